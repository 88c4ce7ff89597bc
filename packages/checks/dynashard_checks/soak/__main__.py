"""`make soak`: reshard a logical partition of 200,000 items up and down while clients work on it over HTTP.

With a domain that adopts (`make soak-adoption`), the items are stored under the bare partition key first. With one that
places items by epochs (`make soak-epochs`), nothing moves.

Clients must see no error. Every listing must return each item that existed throughout exactly once. Writes must be
about as fast as without a resize. At the end the stored items are compared with the acknowledged writes.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from dynashard_checks.soak.soak import TENANT, Plan, Soak, run_soak
from dynashard_local.stack import Stack


class Resizes(Soak):
    """Changes the shard count again and again."""

    def __init__(self, plan: Plan, stack: Stack, console: Console, counts: Sequence[int], budget: float | None) -> None:
        super().__init__(plan, stack, console)
        self._counts, self._budget = counts, budget

    def _changes(self) -> Iterator[Callable[[], None]]:
        return (partial(self._resize, count) for count in self._counts)

    def _resize(self, count: int) -> None:
        budget = ["--budget", str(self._budget)] if self._budget else []
        started = time.monotonic()
        command = self._stack.command("reshard", "start", "users", TENANT, "--to", str(count), *budget, "--json")
        if command.wait():
            raise RuntimeError(f"dynashard reshard start ended with {command.returncode}")
        while True:
            time.sleep(1)
            status = self._resharder.status(self._scope)
            if status.error:
                raise RuntimeError(f"the resize stopped: {status.error}")
            if status.count == count and status.swept and status.target is None:
                break
        self._say(
            f"{count} shards after {time.monotonic() - started:,.0f} s; {self._findings.listings} listings so far"
        )


def main() -> int:
    """Run, and return 0 if nothing was wrong and writes were fast enough."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.soak", description=__doc__)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument(
        "--counts",
        default="64,16",
        help="shard counts to change to, one after the other, from that of the domain: 16, or 1 with epochs",
    )
    parser.add_argument(
        "--before", type=float, default=45, help="seconds of work without a resize, before and after each"
    )
    parser.add_argument("--lease", type=int, default=2, help="seconds")
    parser.add_argument("--budget", type=float, default=1500, help="write units per second of the mover")
    parser.add_argument("--workers", type=int, default=6, help="clients that work on single items")
    parser.add_argument("--listers", type=int, default=2, choices=(0, 1, 2), help="clients that list everything")
    parser.add_argument(
        "--pause", type=float, default=0.12, help="seconds from one request to the next, over all workers"
    )
    parser.add_argument("--list-pause", type=float, default=2.5, help="seconds from one page of a listing to the next")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("build/soak.json"))
    asked = vars(parser.parse_args())
    output: Path = asked.pop("json")
    counts = [int(count) for count in asked.pop("counts").split(",")]
    budget: float | None = asked.pop("budget")
    plan = Plan(**asked)

    def soak(stack: Stack) -> Soak:
        return Resizes(plan, stack, Console(), counts, budget)

    return run_soak(soak, plan, output, about={"counts": counts})


if __name__ == "__main__":
    sys.exit(main())
