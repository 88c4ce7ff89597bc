"""Check materialized copies whose stream worker is killed with -9 while it works.

    python -m dynashard_checks.copies_killed --help

Incidents are created, changed and deleted at random over HTTP on the local stack. The worker that processes the table's
stream is killed several times with records in hand, and the local stack starts it again. When the stream has no more
records, the copies are compared with their incidents, and a repair looks for drift.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx

from domain.samples.participations import PARTICIPATIONS
from dynashard import Dynashard
from dynashard_checks.copies import KEYS, PEOPLE, TENANT, wrong
from dynashard_local.stack import Stack, running_stack
from dynashard_local.workers.resharding import transport_of
from dynashard_local.workers.stream import Positions, Stream, stream_of, streams_client
from dynashard_local.workers.stream_consumer import POSITIONS

WORKER: Final = "dynashard_local.workers.stream_consumer"
LONGEST_WAIT_SECONDS: Final = 900.0


def change(client: httpx.Client, random: Random, number: int, live: list[str]) -> None:
    """Make one random change of an incident over HTTP."""
    people = random.sample(PEOPLE, random.randrange(1, 12))
    act = random.choices(["create", "update", "close", "delete"], [3, 5, 2, 1])[0]
    if act == "create" or not live:
        body = {"id": f"inc_{number}", "number": number + 1, "title": f"title {number}", "participants": people}
        answer = client.post("/v1/incidents", json=body)
        live.append(f"inc_{number}")
    elif act == "delete":
        answer = client.delete(f"/v1/incidents/{live.pop(random.randrange(len(live)))}")
    else:
        body = {"state": "CLOSED"} if act == "close" else {"title": f"title {number}", "participants": people}
        answer = client.patch(f"/v1/incidents/{random.choice(live)}", json=body)
    answer.raise_for_status()


def _send(client: httpx.Client, random: Random, changes: int, live: list[str]) -> None:
    for number in range(changes):
        change(client, random, number, live)


def kill(stack: Stack, random: Random, most: int, sending: "Future[None]") -> int:
    """Kill the worker while it has records in hand, each time another process. Return how often."""
    is_behind, killed, seen = behind(stack), set[int](), _position(stack)
    while len(killed) < most and not sending.done():
        time.sleep(0.02)
        worker = next((pid for pid in workers(stack) if pid not in killed), None)
        # A worker that has moved the position since the last kill has started, and is in the middle of its work.
        if worker is None or _position(stack) == seen:
            continue
        time.sleep(random.random() / 4)
        if is_behind():
            os.kill(worker, signal.SIGKILL)
            killed.add(worker)
            seen = _position(stack)
    return len(killed)


def _position(stack: Stack) -> str:
    path = Path(stack.environment["DATA_DIR"]) / POSITIONS
    return path.read_text() if path.exists() else ""


def workers(stack: Stack) -> list[int]:
    """Return the ids of the processes that consume a stack's stream."""
    mine = f"DATA_DIR={stack.environment['DATA_DIR']}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and WORKER in (entry / "cmdline").read_text():
                found += [int(entry.name)] if mine in (entry / "environ").read_bytes() + b"\0" else []
        except OSError:
            continue  # The process has ended since.
    return found


def behind(stack: Stack) -> Callable[[], bool]:
    """Return a function that returns whether the stream has unprocessed records."""
    endpoint, table = stack.variables["DYNAMODB_ENDPOINT"], stack.variables["TABLE_NAME"]
    stream = Stream(streams_client(endpoint), stream_of(endpoint, table), table)
    path = Path(stack.environment["DATA_DIR"]) / POSITIONS

    def is_behind() -> bool:
        places = Positions(path, stream.arn)
        return any(stream.after(shard, places[shard], 1) for shard in stream.shards())

    return is_behind


def run(stack: Stack, changes: int, kills: int, seed: int) -> dict[str, Any]:
    """Change incidents, kill the worker, wait for the stream, and compare."""
    db = Dynashard(
        transport_of(stack.variables),
        table=stack.variables["TABLE_NAME"],
        topology_table=stack.variables["TOPOLOGY_TABLE"],
        cursor_keys=KEYS,
    )
    random, live = Random(seed), list[str]()
    begun = time.monotonic()
    with ThreadPoolExecutor(1) as pool, stack.client(TENANT) as client:
        sending = pool.submit(_send, client, random, changes, live)
        killed = kill(stack, Random(seed), kills, sending)
        sending.result()
    sent = time.monotonic()
    is_behind = behind(stack)
    while is_behind() and time.monotonic() < sent + LONGEST_WAIT_SECONDS:
        time.sleep(0.25)
    ended = time.monotonic()
    stored, differing = wrong(db)
    *_, repaired = PARTICIPATIONS.repair(db, {"tenant_id": TENANT})
    return {
        "changes": changes,
        "kills": killed,
        "incidents": len(live),
        "copies": stored,
        "differing": differing,
        "repair_found": repaired.drift.total,
        "writing_seconds": round(sent - begun, 1),
        "catching_up_seconds": round(ended - sent, 1),
    }


def main() -> int:
    """Run, print the figures, and return 1 if a copy is wrong or the worker was killed too seldom."""
    parser = argparse.ArgumentParser(
        prog="python -m dynashard_checks.copies_killed", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="copies-") as folder, running_stack(Path(folder), lease=30) as stack:
        found = run(stack, asked.changes, asked.kills, asked.seed)
    print(json.dumps(found, indent=1))
    return int(bool(found["differing"] or found["repair_found"] or found["kills"] < asked.kills))


if __name__ == "__main__":
    sys.exit(main())
