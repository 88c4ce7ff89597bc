"""`make check-firehose`: send a firehose of pings into the local stack, and kill its workers while they work.

Pings are sent over HTTP, many of them twice and some of them days late. The queue writer is killed with -9 while it has
messages in hand, and the stream consumer while it has records to process. Then the stored items are compared with the
pings that were sent, and the roll-ups with the sums of these pings.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from domain.samples.pings import Ping
from dynashard import Dynashard, definition
from dynashard.schema import TYPE
from dynashard.transport import Transport
from dynashard_checks.firehose_truth import differences, truth
from dynashard_checks.firehose_workers import CONSUMER, WRITER, Killer, backlog_of
from dynashard_local.stack import Stack, running_stack
from dynashard_local.workers.resharding import transport_of

TENANT: Final = "firehose"
LIST: Final = 500
PACK_ITEMS: Final = 50
"""How many pings the API packs into one message."""
SENDERS: Final = 2
DUPLICATES: Final = 0.10
LATE: Final = 0.05
LONGEST_WAIT_SECONDS: Final = 7200.0
"""The local engine does one thing at a time, and may share two cores with everything else."""


@dataclass
class Report:
    """The result of a run. Times are in seconds since its start."""

    pings: int
    distinct: int
    late: int
    writers_killed: int = 0
    consumers_killed: int = 0
    stored: int = 0
    missing: int = 0
    unwanted: int = 0
    doubled: int = 0
    left_on_queues: int = 0
    dead_letters: int = 0
    rows: int = 0
    rows_that_differ: int = 0
    accepting_seconds: float = 0.0
    draining_seconds: float = 0.0
    rolling_up_seconds: float = 0.0
    accepted_per_second: float = 0.0
    stored_per_second: float = 0.0
    differences: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        """Whether no ping was lost, stored twice or left on a queue, and the roll-ups are exact."""
        wrong = (self.missing, self.unwanted, self.doubled, self.left_on_queues, self.dead_letters)
        return not any(wrong) and not self.rows_that_differ and self.stored == self.distinct


def feed(count: int, seed: int, now: datetime) -> list[dict[str, Any]]:
    """Return the bodies of `count` pings in the order of sending: 10% of them are duplicates, and 5% are late.

    Args:
        count: how many are sent.
        seed: determines all of them.
        now: pings are of the ten minutes before it; late ones are up to six days older.
    """
    drawn = random.Random(seed)
    now = now.replace(microsecond=0)
    distinct = [_ping(drawn, number, now) for number in range(count - round(count * DUPLICATES))]
    # A duplicate may come soon or long after the first, as retries and replays do.
    sent: list[dict[str, Any]] = [*distinct, *drawn.sample(distinct, count - len(distinct))]
    tail = sent[len(distinct) :]
    for ping in tail:
        sent.insert(drawn.randrange(len(sent)), ping)
    return sent[: len(sent) - len(tail)]


def _ping(drawn: random.Random, number: int, now: datetime) -> dict[str, Any]:
    late = drawn.random() < LATE
    at = now - timedelta(seconds=drawn.randrange(600))
    if late:
        at -= timedelta(hours=drawn.randrange(1, 6 * 24))
    # One episode gets half of all pings, as a new one does on its first evening.
    episode = "new" if drawn.random() < 0.5 else f"e{drawn.randrange(5)}"  # noqa: PLR2004
    return {
        "series": f"series-{drawn.randrange(3)}",
        "episode": episode,
        "at": at.isoformat(),
        "id": f"p{number}",
        "session_id": f"session-{number % 997}",
        "seconds": drawn.randrange(1, 61),
    }


def run(stack: Stack, count: int, kills: int, seed: int, say: Callable[[str], None]) -> Report:
    """Send pings, kill workers, wait until the queues are empty, and compare.

    Args:
        stack: a running local stack.
        count: pings to send.
        kills: how often each of the two workers is killed while it works.
        seed: of the feed.
        say: called with each line of progress.
    """
    now = datetime.now(UTC)
    bodies = feed(count, seed, now)
    pings = [Ping.model_validate_json(json.dumps({**body, "tenant_id": TENANT})) for body in bodies]
    wanted = {_stored_name(ping) for ping in pings}
    late = sum(ping.at < now - timedelta(minutes=30) for ping in pings)
    report = Report(count, len(wanted), late)
    with backlog_of(stack) as backlog:
        killer = Killer(stack, backlog, say)
        _pour(stack, bodies, kills, killer, report)
        report.left_on_queues, report.dead_letters = backlog.messages(), backlog.dead()
    report.writers_killed, report.consumers_killed = (len(killer.killed[each]) for each in (WRITER, CONSUMER))
    transport = transport_of(stack.variables)
    db = Dynashard(
        transport,
        table=stack.variables["TABLE_NAME"],
        topology_table=stack.variables["TOPOLOGY_TABLE"],
        cursor_keys=["this run signs no cursors"],
    )
    _compare(report, transport, stack.variables["TABLE_NAME"], wanted)
    report.rows, report.differences = len(truth(pings)), differences(db, TENANT, pings)
    report.rows_that_differ = len(report.differences)
    return report


def _pour(stack: Stack, bodies: Sequence[dict[str, Any]], kills: int, killer: Killer, report: Report) -> None:
    """Send all pings while workers are killed, and wait until they are stored and the stream is processed."""
    backlog, begun = killer.backlog, time.monotonic()
    with ThreadPoolExecutor(SENDERS + 1) as pool:
        sending = [pool.submit(_send, stack, bodies[each::SENDERS]) for each in range(SENDERS)]
        killing = pool.submit(
            killer.kill,
            kills,
            messages=len(bodies) // PACK_ITEMS,
            sent=lambda: all(each.done() for each in sending),
            wait_seconds=LONGEST_WAIT_SECONDS,
        )
        for each in sending:
            each.result()
        report.accepting_seconds = time.monotonic() - begun
        killer.say(f"accepted {report.pings:,} in {report.accepting_seconds:.1f} s")
        _wait(lambda: backlog.messages() == 0)
        report.draining_seconds = time.monotonic() - begun
        killer.say(f"drained after {report.draining_seconds:.1f} s")
        killing.result()
    _wait(lambda: not backlog.changes())
    report.rolling_up_seconds = time.monotonic() - begun
    killer.say(f"rolled up after {report.rolling_up_seconds:.1f} s")
    report.accepted_per_second = round(report.pings / report.accepting_seconds, 1)
    report.stored_per_second = round(report.distinct / report.draining_seconds, 1)


def _send(stack: Stack, bodies: Sequence[dict[str, Any]]) -> None:
    with stack.client(TENANT) as client:
        for at in range(0, len(bodies), LIST):
            part = list(bodies[at : at + LIST])
            while (answer := client.post("/v1/pings", json=part)).status_code != 202:  # noqa: PLR2004
                # Send the message again: pings that were accepted already are recognised as duplicates.
                if answer.status_code < 500 and answer.status_code != 429:  # noqa: PLR2004
                    raise RuntimeError(answer.text)
                time.sleep(0.2)


def _compare(report: Report, transport: Transport, table: str, wanted: set[str]) -> None:
    """Read the whole table, and compare it with the pings that were sent."""
    found = Counter(_items(transport, table))
    report.stored = len(found)
    report.doubled = sum(times - 1 for times in found.values())
    report.missing = len(wanted - found.keys())
    report.unwanted = len(found.keys() - wanted)


def _items(transport: Transport, table: str) -> Iterator[str]:
    """Yield the names of all stored pings, in whatever shard they are."""
    entity = definition(Ping)
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        answer = transport.call("Scan", request)
        yield from (
            _stored_name(entity.decode(item)) for item in answer["Items"] if item.get(TYPE) == {"S": entity.name}
        )
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _stored_name(ping: Ping) -> str:
    key = definition(Ping).key_of(ping)
    return f"{key.partition} {key.sort} {ping.seconds}"


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    while not done() and time.monotonic() < deadline:
        time.sleep(0.25)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the figures, and return 0 if everything is right and both workers were killed as often as asked."""
    parser = argparse.ArgumentParser(
        prog="python -m dynashard_checks.firehose", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--pings", type=int, default=50_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    asked = parser.parse_args(arguments)

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="firehose-") as folder, running_stack(Path(folder), lease=30) as stack:
        report = run(stack, asked.pings, asked.kills, asked.seed, say)
    figures = {**asdict(report), "differences": report.differences[:20], "right": report.right}
    print(json.dumps(figures, indent=1))
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")
    # A run in which the workers were not killed shows less than was asked for.
    killed = min(report.writers_killed, report.consumers_killed) >= asked.kills
    return 0 if report.right and killed else 1


if __name__ == "__main__":
    sys.exit(main())
