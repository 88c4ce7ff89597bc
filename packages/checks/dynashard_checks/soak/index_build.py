"""`make soak-index`: build an index over 100,000 items while clients work on them over HTTP.

The items are stored without the keys of the index, as before it was declared. Clients must see no error. Writes must be
about as fast as without the build, which has a lower priority: elsewhere it runs on another machine than what it works
on. At the end each stored item must have the keys that its fields make, and the index must have an entry for each item
and no other.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from dynashard.backfills import Options
from dynashard.backfills.index_keys import wrong_index_keys
from dynashard.schema import PK, SK, index_pk, index_sk
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Transport
from dynashard.transport.interface import Resend, Wire
from dynashard_checks.soak.soak import Plan, Soak, run_soak
from dynashard_local.stack import Stack

INDEX: Final = "by_email"
_PRIORITY: Final = 10
"""What the build adds to its niceness."""


class WithoutIndex(OneByOne):
    """Stores items without the keys of an index slot, as a release does that does not declare it."""

    def __init__(self, inner: Transport, slot: str) -> None:
        self._inner, self._names = inner, (index_pk(slot), index_sk(slot))

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send a request; see `Transport.call`."""
        if operation == "BatchWriteItem":
            for writes in request["RequestItems"].values():
                for write in writes:
                    for name in self._names:
                        write["PutRequest"]["Item"].pop(name)
        return self._inner.call(operation, request, resend=resend)


class IndexBuilds(Soak):
    """Builds one index."""

    def __init__(self, plan: Plan, stack: Stack, console: Console, write_units: float) -> None:
        super().__init__(plan, stack, console)
        self._write_units = write_units
        self._index = self._scope.entity.indexes[INDEX]

    def _loading(self) -> Transport:
        return WithoutIndex(self._transport, self._index.slot)

    def _changes(self) -> Iterator[Callable[[], None]]:
        yield self._build

    def _build(self) -> None:
        started = time.monotonic()
        units = ("--write-units", str(self._write_units), "--read-units", str(self._write_units))
        command = self._stack.command("index", "build", "users", INDEX, *units)
        os.setpriority(os.PRIO_PROCESS, command.pid, _PRIORITY)
        if command.wait():
            raise RuntimeError(f"dynashard index build ended with {command.returncode}")
        self._say(f"built in {time.monotonic() - started:,.0f} s")

    def _compare(self) -> None:
        """Compare the stored items with the acknowledged writes, and the index with the stored items."""
        super()._compare()
        router = self._database(self._transport).store.router
        stored = {(item[PK]["S"], item[SK]["S"]): item for item in self._scanned(ConsistentRead=True)}
        entries = {(item[PK]["S"], item[SK]["S"]) for item in self._scanned(IndexName=self._index.slot)}
        for key, item in stored.items():
            if wrong_index_keys(router, self._scope.entity, item, [self._index]):
                self._findings.anomaly(f"wrong keys of {INDEX}: {key}")
        self._findings.anomaly(*(f"not in {INDEX}: {key}" for key in stored.keys() - entries))
        self._findings.anomaly(*(f"only in {INDEX}: {key}" for key in entries - stored.keys()))
        self._say(f"{len(entries):,} entries compared")


def main() -> int:
    """Run, and return 0 if nothing was wrong and writes were fast enough."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.soak.index_build", description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--before", type=float, default=45, help="seconds of work before and after the build")
    pace = Options().write_units
    parser.add_argument("--write-units", type=float, default=pace, help="write and read units a second of the build")
    parser.add_argument("--workers", type=int, default=6, help="clients that work on single items")
    parser.add_argument("--pause", type=float, default=0.04, help="seconds between requests, over all workers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("build/soak-index.json"))
    asked = vars(parser.parse_args())
    output: Path = asked.pop("json")
    write_units: float = asked.pop("write_units")
    plan = Plan(lease=2, listers=0, list_pause=0, **asked)

    def soak(stack: Stack) -> Soak:
        return IndexBuilds(plan, stack, Console(), write_units)

    return run_soak(soak, plan, output, about={"index": INDEX})


if __name__ == "__main__":
    sys.exit(main())
