"""A program that forks after its first requests: four children and the parent read at the same time.

python -m tests.unit.transport.forking botocore|direct URL      # prints how many reads were wrong, of all
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from threading import Event, Thread
from typing import Any

from dynashard.errors import DynashardError
from dynashard.transport import Call, Transport, TransportName, connect

CHILDREN = 4
READS = 240
TOGETHER = 8
_LONGEST = 60


def requests(name: str) -> Iterator[list[Call]]:
    """Yield the reads of a process: half of them alone, half of them `TOGETHER` at a time."""
    calls = [Call("GetItem", {"TableName": "users", "Key": {"PK": {"S": f"{name}-{n}"}}}) for n in range(READS)]
    yield from ([call] for call in calls[: READS // 2])
    yield from (calls[at : at + TOGETHER] for at in range(READS // 2, READS, TOGETHER))


def wrong_reads(transport: Transport, name: str) -> int:
    """Return how many reads of a process failed, or were answered with what another one had asked for."""
    return sum(
        isinstance(answer, DynashardError) or answer.get("Item") != call.request["Key"]
        for calls in requests(name)
        for call, answer in zip(calls, _answers(transport, calls), strict=True)
    )


def _answers(transport: Transport, calls: list[Call]) -> list[Any]:
    if len(calls) > 1:
        return list(transport.try_all(calls))
    try:
        return [transport.call(*calls[0][:2])]
    except DynashardError as error:
        return [error]


def child_of(work: Callable[[], object]) -> int:
    """Fork, do the work in the child, and return the end of a pipe on which the text of its result arrives."""
    reading, writing = os.pipe()
    if not os.fork():
        # A child that waits for a lock ends without a result.
        signal.alarm(_LONGEST)
        try:
            os.write(writing, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    return reading


def result_of(child: int) -> str:
    """Return the result of a child; empty if it has failed."""
    with open(child, encoding="utf-8") as pipe:
        return pipe.read()


def main(transport: TransportName, url: str) -> None:
    """Read, fork and read in all processes."""
    opened = connect(url, "eu-west-1", transport=transport, access_key="local", secret_key="local", attempts=1)  # noqa: S106
    wrong_reads(opened, "before")
    stop = Event()

    def keep_reading() -> None:
        while not stop.is_set():
            opened.call("GetItem", {"TableName": "users", "Key": {"PK": {"S": "busy"}}})

    # A connection of this thread is in use, and it may hold locks, while the process forks.
    busy = Thread(target=keep_reading)
    busy.start()
    results = [child_of(partial(wrong_reads, opened, f"child{number}")) for number in range(CHILDREN)]
    stop.set()
    busy.join()
    wrong = {"parent": wrong_reads(opened, "parent")}
    wrong["children"] = sum(int(result_of(each) or READS) for each in results)
    sys.stdout.write(f"{wrong['parent']} {wrong['children']} {CHILDREN * READS}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
