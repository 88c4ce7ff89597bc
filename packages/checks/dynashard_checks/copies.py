"""`python -m dynashard_checks.copies`: check materialized copies after random changes whose stream misbehaves.

Incidents are created, changed and deleted at random. Two consumers process the stream at the same time. Batches arrive
twice, shuffled, and from earlier positions. Requests and answers are lost, requests are throttled, and a consumer may
fail between any two of them. As with Lambda, a batch that is not acknowledged is delivered again. At the end the copies
are compared with their incidents, and a repair looks for drift.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

from domain.samples.incidents import Incident
from domain.samples.participations import PARTICIPATIONS, Participation
from dynashard import Dynashard
from dynashard.errors import DynashardError, ThrottledError
from dynashard.topology import DeclaredTopology
from dynashard.transport import Call, Resend, Transport, Wire, connect
from dynashard.transport.classification import unanswered
from dynashard_checks.threads import at_work
from dynashard_local.engine.process import running_engine
from dynashard_local.engine.tables import engine_client, ensure_tables, table_plans
from dynashard_local.settings import Settings
from dynashard_local.template import committed
from dynashard_local.workers.stream import Stream, stream_of, streams_client
from dynashard_patterns.changes import DeadLetter, Dispatcher

TENANT = "acme"
REDELIVERED = 0.1
"""The share of processed batches after which the stream goes back a few batches."""
PEOPLE = [f"user_{number}" for number in range(40)] + [f"team_{number}" for number in range(10)]
KEYS = ["0123456789abcdef"]


class Faulty:
    """A transport on which a share of all requests fails."""

    def __init__(self, inner: Transport, random: Random, share: float, struck: Counter[str]) -> None:
        self._inner = inner
        self._random = random
        self._share = share
        self._struck = struck
        self._lock = Lock()

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send the request, or let it fail."""
        with self._lock:
            kind = self._random.choice(["lost request", "lost answer", "throttled"])
            strikes = self._random.random() < self._share
            self._struck[kind] += strikes
        if strikes and kind == "throttled":
            raise ThrottledError("injected", operation=operation, aws_code="ThrottlingException")
        if strikes and kind == "lost request":
            raise unanswered(operation, "ReadTimeoutError", "injected")
        answer = self._inner.call(operation, request, resend=resend)
        if strikes:
            raise unanswered(operation, "ReadTimeoutError", "injected")
        return answer

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send the calls one after the other."""
        del concurrency
        return [self.call(each.operation, each.request, resend=each.resend) for each in calls]

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Send the calls one after the other."""
        del concurrency
        return [self._tried(each) for each in calls]

    def _tried(self, call: Call) -> Wire | DynashardError:
        try:
            return self.call(call.operation, call.request, resend=call.resend)
        except DynashardError as error:
            return error

    def close(self) -> None:
        """Do nothing: the inner transport belongs to the caller."""


def change(db: Dynashard, random: Random, number: int, live: list[str]) -> None:
    """Make one random change of an incident."""
    incidents = db.collection(Incident)
    people = random.sample(PEOPLE, random.randrange(1, 12))
    act = random.choices(["create", "update", "close", "delete"], [3, 5, 2, 1])[0]
    if act == "create" or not live:
        made = Incident(tenant_id=TENANT, number=number + 1, title=f"title {number}", participants=people)
        live.append(incidents.create(made).id)
        return
    key = {"tenant_id": TENANT, "id": random.choice(live)}
    if act == "delete":
        incidents.delete(key)
        live.remove(key["id"])
    elif act == "close":
        incidents.update(key, set={"state": "CLOSED", "status": f"RESOLVED {number}"})
    else:
        incidents.update(key, set={"title": f"title {number}", "participants": people})


def consume(stream: Stream, db: Dynashard, random: Random, done: list[bool], counted: Counter[str]) -> None:
    """Process the stream as Lambda does on a bad day: batches come twice, shuffled, and from earlier positions."""
    dispatcher = Dispatcher([PARTICIPATIONS.consumer(db)], keep=_never)
    (shard,) = stream.shards()
    at: str | None = None
    before: list[str | None] = [None]
    while True:
        ended = done[0]
        records = stream.after(shard, at, random.randrange(1, 100))
        if not records and ended:
            return
        outcome = dispatcher.dispatch(random.sample(records, len(records)))
        counted["batches"] += 1
        if outcome.again is not None:
            counted["batches again"] += 1
            continue
        if records:
            before.append(records[-1]["dynamodb"]["SequenceNumber"])
        # Sometimes one or several processed batches are delivered again.
        redelivered = random.random() < REDELIVERED and not ended
        counted["redelivered"] += redelivered
        at = random.choice(before[-5:]) if redelivered else before[-1]
        if not records:
            time.sleep(0.02)


def wrong(db: Dynashard) -> tuple[int, int]:
    """Return how many copies there are, and how many differ from their incidents."""
    truth = {
        (copy.incident_id, copy.participant): copy.__dict__
        for incident in db.collection(Incident).scan({"tenant_id": TENANT}, consistent=True)
        for copy in PARTICIPATIONS.make(incident)
    }
    stored: dict[tuple[str, str], Any] = {}
    for person in PEOPLE:
        # Read by the index, which also finds the copies of deleted incidents.
        found = db.collection(Participation).scan({"tenant_id": TENANT, "participant": person}, index="by_participant")
        stored |= {(copy.incident_id, copy.participant): copy.__dict__ for copy in found}
    return len(stored), sum(truth.get(key) != stored.get(key) for key in truth.keys() | stored.keys())


def run(changes: int, share: float, seed: int) -> dict[str, Any]:
    """Run once on an engine of its own, and return the figures."""
    random = Random(seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_engine(Settings(data_dir=Path(folder), dynamodb_port=0)) as engine,
    ):
        ensure_tables(engine_client(engine.endpoint), plans := table_plans(committed()), data=folder)
        (table,) = [plan.name for plan in plans if plan.name.endswith("-Data-Table")]
        wire = connect(engine.endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
        db = Dynashard(wire, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
        struck, counted, done, live = Counter[str](), Counter[str](), [False], list[str]()
        consumers = []
        for number in (1, 2):
            faulty = Dynashard(
                Faulty(wire, Random(seed + number), share, struck),
                table=table,
                topology=DeclaredTopology(),
                cursor_keys=KEYS,
            )
            stream = Stream(streams_client(engine.endpoint), stream_of(engine.endpoint, table), table)
            consumers.append(partial(consume, stream, faulty, Random(seed - number), done, counted))
        begun = time.perf_counter()
        with at_work(*consumers):
            try:
                for number in range(changes):
                    change(db, random, number, live)
                written = time.perf_counter()
            finally:
                done[0] = True
        ended = time.perf_counter()
        stored, differing = wrong(db)
        *_, repaired = PARTICIPATIONS.repair(db, {"tenant_id": TENANT})
    return {
        "changes": changes,
        "incidents": len(live),
        "copies": stored,
        "differing": differing,
        "repair_found": repaired.drift.total,
        "faults": dict(struck),
        **counted,
        "writing_seconds": round(written - begun, 1),
        "catching_up_seconds": round(ended - written, 1),
    }


def main() -> int:
    """Run, print the figures, and return 1 if a copy is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m dynashard_checks.copies", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--faults", type=float, default=0.02, help="share of all requests that fail")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    found = run(asked.changes, asked.faults, asked.seed)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return int(bool(found["differing"] or found["repair_found"]))


def _never(dead: DeadLetter) -> None:
    raise AssertionError(dead)


if __name__ == "__main__":
    sys.exit(main())
