"""`make check-truth`: check that every answer is true while answers are lost, requests run late, and more fails.

Clients share a few keys and use all operations of the API, with and without conditions. A proxy between the API and the
engine loses answers before and after execution, executes requests seconds late, throttles, answers 500 and 503, resets
connections and damages answers. A linearizability checker checks the history of each key, and each listing is compared
with the keys that existed throughout. See docs/proof.md.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dynashard_checks.truth.batches import run_batches
from dynashard_checks.truth.clients import LEVELS
from dynashard_checks.truth.counters import run_counters
from dynashard_checks.truth.epochs import run_epochs
from dynashard_checks.truth.judging import Verdict
from dynashard_checks.truth.proxy import Rates
from dynashard_checks.truth.running import Plan, run_in_process, run_over_http

_UNKNOWN_SHARE: Final = {"plain": 1.0, "guarded": 0.3, "exactly-once": 0.0}
"""The largest permitted share of ambiguous operations whose outcome stays unknown, by level."""
_DEADLINE: Final = 10.0
_MOST_SHOWN: Final = 10


def failures(verdict: Verdict, level: str) -> list[str]:
    """Return a line for each requirement that a run violates."""
    found = [f"{len(verdict.violations)} violations"] if verdict.violations else []
    found += [f"{len(verdict.strange)} unexpected answers"] if verdict.strange else []
    found += [f"{len(verdict.baseless)} outcomes unknown without an ambiguous attempt"] if verdict.baseless else []
    share = verdict.unknown.total() / max(1, verdict.ambiguous.total())
    if share > _UNKNOWN_SHARE[level]:
        found.append(f"{share:.0%} of ambiguous operations unknown; at most {_UNKNOWN_SHARE[level]:.0%}")
    if verdict.counter is not None and not verdict.counter.exact:
        found.append(f"the counter is at {verdict.counter.found} after {verdict.counter.wanted} increments")
    if level == "exactly-once" and verdict.longest > _DEADLINE:
        found.append(f"an operation took {verdict.longest:.1f} s; at most {_DEADLINE:.0f} s")
    return found


def judged_batches(items: int, seed: int) -> int:
    """Run batches, print their outcomes, and return 0 if every outcome was true."""
    started = time.monotonic()
    verdict = run_batches(items, seed=seed)
    for each in verdict.false[:_MOST_SHOWN]:
        print(each, flush=True)
    print(json.dumps({**verdict.as_dict(), "seconds": round(time.monotonic() - started)}, indent=2), flush=True)
    return 1 if verdict.false else 0


def judged_counters(operations: int, seed: int) -> int:
    """Change and read a counter, print the answers, and return 0 if all of them were true."""
    started = time.monotonic()
    verdict = run_counters(operations, seed=seed)
    for each in verdict.false[:_MOST_SHOWN]:
        print(each, flush=True)
    print(json.dumps({**verdict.as_dict(), "seconds": round(time.monotonic() - started)}, indent=2), flush=True)
    return 1 if verdict.false else 0


def judged_epochs(operations: int, levels: Sequence[str], seed: int) -> int:
    """Run clients of items placed by epochs while counts change, print the verdicts, and return 0 if all is true."""
    wrong = 0
    for level in levels:
        started = time.monotonic()
        verdict = run_epochs(operations, level=level, seed=seed)
        for each in verdict.failures[:_MOST_SHOWN]:
            print(each, flush=True)
        shown = {**verdict.as_dict(), "seconds": round(time.monotonic() - started)}
        print(json.dumps({level: shown}, indent=2), flush=True)
        wrong += len(verdict.failures)
    return 1 if wrong else 0


def main() -> int:
    """Run, and return 0 if every answer was true."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.truth", description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000, help="operations of each level")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=list(LEVELS))
    parser.add_argument("--in-process", action="store_true", help="call the API function; without it, over HTTP")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=20, help="clients of each process")
    parser.add_argument("--lost", type=float, default=0.07, help="share of requests lost or late")
    parser.add_argument("--other", type=float, default=0.19, help="share of requests with other faults")
    parser.add_argument("--batches", type=int, metavar="ITEMS", help="instead, write this many items in batches")
    parser.add_argument(
        "--epochs", type=int, metavar="OPERATIONS", help="instead, use items placed by epochs while counts change"
    )
    parser.add_argument(
        "--counters", type=int, metavar="OPERATIONS", help="instead, take from one counter while its parts become more"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("build/truth.json"))
    asked = parser.parse_args()
    if asked.batches:
        return judged_batches(asked.batches, asked.seed)
    if asked.counters:
        return judged_counters(asked.counters, asked.seed)
    if asked.epochs:
        # What a process says in its log about its clock is counted.
        logging.getLogger("dynashard.clock").setLevel(logging.ERROR)
        return judged_epochs(asked.epochs, asked.levels, asked.seed)
    plan = Plan(
        asked.operations,
        processes=asked.processes,
        threads=asked.threads,
        rates=Rates(asked.lost, asked.other),
        seed=asked.seed,
    )
    result: dict[str, Any] = {}
    wrong = 0
    for level in asked.levels:
        started = time.monotonic()
        verdict, log = (run_in_process if asked.in_process else run_over_http)(replace(plan, level=level))
        found = failures(verdict, level)
        wrong += len(found)
        seconds = round(time.monotonic() - started)
        mode = "in process" if asked.in_process else "over HTTP"
        result[level] = {**verdict.as_dict(), "engine": log, "mode": mode, "seconds": seconds, "failures": found}
        for each in (*verdict.violations, *verdict.strange, *verdict.baseless)[:_MOST_SHOWN]:
            print(each, flush=True)
        print(json.dumps({level: result[level]}, indent=2), flush=True)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
