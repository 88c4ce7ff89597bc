"""Replace 5 MB of details of one incident by 100 writers at once, while others read them.

    python -m dynashard_checks.details --help

The title of every version is its number, and its details differ from all others in every part. A reader that gets parts
of two versions, or a title with the details of another version, is counted. At the end one version must be left.
"""

import argparse
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from domain.samples.incidents import Incident
from dynashard import Collection, Dynashard, RetryPolicy, schema
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport, connect
from dynashard.transport.interface import metered
from dynashard_lab.bench.stored import KEYS, REGION, TABLE
from dynashard_lab.bench.world import world

KEY: Final = {"tenant_id": "bench", "id": "incident"}
_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run."""

    megabytes: float
    stored_megabytes: float
    write_units: float
    read_units: float
    summary_read_units: float
    write_ms: float
    read_ms: float
    replaces: int
    replaces_seconds: float
    reads: int
    versions_seen: int
    mixtures: int
    versions_left: int
    pieces_left: int


class Texts:
    """Gives each version a text of the same length. Two texts differ in most of their characters."""

    def __init__(self, size: int) -> None:
        draw = random.Random(1)
        words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9))) for _ in range(4000)]
        self._lines: list[dict[str, Any]] = []
        total = 0
        while total < size:
            line = {"at": draw.randint(1_700_000_000, 1_800_000_000), "text": " ".join(draw.choices(words, k=12))}
            self._lines.append(line)
            total += len(orjson.dumps(line)) + 1

    def of(self, version: int) -> list[dict[str, Any]]:
        """Return the details of a version: the same lines, starting at another one."""
        at = version * 37 % len(self._lines)
        return [{"version": version}, *self._lines[at:], *self._lines[:at]]


def measure(transport: Transport, name: str, *, megabytes: float, writers: int, readers: int) -> Figures:
    """Write, read and race on a table, and return the figures."""
    texts = Texts(int(megabytes * _MEGABYTE))
    retry_policy = RetryPolicy(seconds=3600, first_pause=0.005, longest_pause=0.5)
    incidents = Dynashard(
        transport, table=name, topology=DeclaredTopology(), cursor_keys=["k" * 16], retry_policy=retry_policy
    ).collection(Incident)
    begun = time.perf_counter()
    with metered() as made:
        incidents.create(_incident(texts, 0))
    written = time.perf_counter()
    with metered() as read:
        incidents.get(KEY, include=["details"])
    seen_ms = (time.perf_counter() - written) * 1000
    with metered() as summary:
        incidents.get(KEY)
    race = _race(incidents, texts, writers, readers)
    left = _left(transport, name)
    return Figures(
        megabytes=megabytes,
        stored_megabytes=round(sum(left.values()) / _MEGABYTE, 2),
        write_units=made.consumed.write_units,
        read_units=read.consumed.read_units,
        summary_read_units=summary.consumed.read_units,
        write_ms=round((written - begun) * 1000),
        read_ms=round(seen_ms),
        versions_left=len({key.split("#")[1] for key in left}),
        pieces_left=sum(key.startswith("p#") for key in left),
        **race,
    )


def _race(incidents: Collection[Incident], texts: Texts, writers: int, readers: int) -> dict[str, Any]:
    begin, over = threading.Barrier(writers + readers), threading.Event()
    seen: set[int] = set()
    reads: list[bool] = []

    def write(version: int) -> None:
        begin.wait()
        incidents.replace(_incident(texts, version))

    def read() -> None:
        begin.wait()
        while not over.is_set():
            found = incidents.get(KEY, include=["details"])
            version = int(found.title)
            seen.add(version)
            reads.append(found.details == texts.of(version))

    begun = time.perf_counter()
    with ThreadPoolExecutor(writers + readers) as pool:
        reading = [pool.submit(read) for _ in range(readers)]
        work = [pool.submit(write, version) for version in range(1, writers + 1)]
        wait(work)
        over.set()
        for each in (*work, *reading):
            each.result()
    return {
        "replaces": writers,
        "replaces_seconds": round(time.perf_counter() - begun, 1),
        "reads": len(reads),
        "versions_seen": len(seen),
        "mixtures": reads.count(False),
    }


def _incident(texts: Texts, version: int) -> Incident:
    return Incident(**KEY, number=1, title=str(version), details=texts.of(version))


def _left(transport: Transport, name: str) -> dict[str, int]:
    """Return the attachments stored with the incident: the bytes of each piece by its sort key."""
    found: dict[str, int] = {}
    request: dict[str, Any] = {"TableName": name, "ConsistentRead": True}
    while True:
        answer = transport.call("Scan", request)
        for item in answer["Items"]:
            if "~" in item[schema.TYPE]["S"]:
                found[item[schema.SK]["S"]] = len(item.get("Data", {}).get("B", "")) * 3 // 4
        if "LastEvaluatedKey" not in answer:
            return found
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def main() -> None:
    """Measure, print the figures, and fail if a reader saw a mixture or an old version is left."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.details", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=5.0)
    parser.add_argument("--writers", type=int, default=100)
    parser.add_argument("--readers", type=int, default=4)
    asked = parser.parse_args()
    with world() as made:
        # The engine writes one item after the other, so 100 writes of 5 MB wait longer than on DynamoDB.
        transport = connect(
            made.engine_url, REGION, access_key=KEYS[0], secret_key=KEYS[1], read_timeout=300, max_connections=250
        )
        figures = measure(transport, TABLE, megabytes=asked.megabytes, writers=asked.writers, readers=asked.readers)
    for key, value in asdict(figures).items():
        print(f"{key.replace('_', ' '):<20} {value:>12,}")
    if figures.mixtures or figures.versions_left != 1 or not figures.reads:
        sys.exit(1)


if __name__ == "__main__":
    main()
