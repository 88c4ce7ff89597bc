"""Read random answers by readers of bytes and by the codec; no socket is opened.

    python -m dynashard_checks.fuzz_readers --help

Collections of the sample domain's entities, and of some with fields of every type, are asked for entities, fields and
API documents by page, for scans and for batches. Most bodies of answers are as DynamoDB sends them, with one or two odd
things in them. What the readers make of the bytes must be what the codec makes of the parsed answers: the same items,
mappings, texts and cursors, or the same error. A call that fails is printed with its number, and
`--from NUMBER --answers 1` makes it again.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from random import Random
from typing import Any, Final

from dynashard import Dynashard, EntityDefinition
from dynashard.placement import UNSHARDED
from dynashard.runtime import Runtime
from dynashard.topology import View
from dynashard_checks.reader_entities import Subject, subjects
from dynashard_checks.reader_oddities import BEYOND, NOW, TABLE
from dynashard_checks.reader_trials import WAYS, Asked, Outcome, Script, Trial, watched
from dynashard_serving.stored_texts import stored_text

SHOWN: Final = 10
_STEP: Final = 10_000
_CURSOR_KEYS: Final = ("the key of the cursors of this command",)
_INSTANT: Final = Runtime(lambda: NOW, lambda _: None, lambda: 0.0)


class _Counts:
    """A topology in which nothing moves."""

    def __init__(self, count: int) -> None:
        self._count = count

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        del partition
        return View(UNSHARDED if entity.shards is None else self._count)

    def index_view(self, *_: Any) -> View:
        return View(self._count)

    def refresh(self, *_: Any) -> None:
        """Views are not cached."""


@dataclass
class Report:
    """The counts of a run, and its failures.

    Attributes:
        kinds, views: how bodies were read, by the odd things in them and by what was asked for.
        outcomes: of calls.
    """

    answers: int = 0
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    views: Counter[tuple[str, str]] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def table(self, counts: Counter[tuple[str, str]]) -> Iterator[str]:
        """Return the lines of a table of counts."""
        yield f"{'':40}" + "".join(f"{way:>17}" for way in WAYS)
        for row in sorted({row for row, _ in counts}):
            yield f"{row:40}" + "".join(f"{counts[row, way]:17,d}" for way in WAYS)


class Fuzzer:
    """Makes calls by number, each from its own random numbers. They must be `watched`."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._subjects = subjects()
        self.report = Report()
        for subject in self._subjects:
            # The first item of a process is decoded by the codec.
            subject.entity.decode(subject.items[0])

    def call(self, number: int) -> None:
        """Make one call by the codec and by the readers, and report what differs."""
        random = Random(f"{self._seed}:{number}")
        subject = random.choice(self._subjects)
        script = Script(random, subject)
        counts = _Counts(random.choice([1, 1, 2]))
        db = Dynashard(script, table=TABLE, topology=counts, cursor_keys=_CURSOR_KEYS, runtime=_INSTANT)
        trial = Trial(script, db.collection(subject.model), subject, _asked(random, subject))
        wanted, found = trial.by_codec(plain=True), trial.by_readers()
        self._count(trial)
        said = f"the same error, {found.error[0]}" if found.error else "the same items"
        if wrong := wrong_with(found, wanted, possible=script.possible):
            allowed = None if script.possible else _allowed(trial, found, wanted)
            if allowed is None:
                self._failed(number, trial, wrong)
            said = allowed or "wrong"
        self.report.outcomes[said] += 1

    def _count(self, trial: Trial) -> None:
        for body, way in trial.script.ways:
            self.report.answers += bool(body.kinds)
            self.report.views[trial.asked.view, way] += bool(body.kinds)
            self.report.kinds.update((kind, way) for kind in body.kinds)

    def _failed(self, number: int, trial: Trial, why: str) -> None:
        bodies = " ".join(f"{body.kinds} {body.sent!r}" for _, body in trial.script.served)
        failure = f"call {number}, {trial.asked.view} of {trial.subject.entity.name}: {why}: {trial.asked} {bodies}"
        self.report.failures.append(failure)
        print(f"wrong: {failure}")


def _asked(random: Random, subject: Subject) -> Asked:
    view = random.choice(
        ["entities", "entities", "fields", "fields", "documents", "documents", "scan", "batch", "batch"]
    )
    if view == "documents" and stored_text(subject.model) is None:
        view = "entities"
    arguments: dict[str, Any] = {"limit": random.choice([1, 2, 2, 3, 5])}
    arguments |= random.choice([{}, {}, {}, {"order": "shard"}])
    near, far = 1, random.randrange(2, 6)
    if view != "scan" and not random.randrange(4):
        arguments["direction"] = "desc"
        near, far = 999_999, 999_999 - far
    low, high = (f"{each:06d}" for each in sorted([near, far]))
    arguments |= random.choice([{}, {}, {}, {"start": low, "end": high}, {"prefix": low[:5]}])
    fields = None
    if view == "fields" or (view == "scan" and not random.randrange(3)):
        fields = random.choice(subject.selections)
    return Asked(view, arguments, fields, random.sample(subject.keys, random.randrange(1, 4)), random.choice([1, 2]))


def _allowed(trial: Trial, found: Outcome, wanted: Outcome) -> str | None:
    """Why readers may differ from the codec about malformed bodies; None if they may not."""
    if trial.by_codec(plain=False) == found:
        return f"refused, {BEYOND}"
    one_pass = trial.in_one_pass(plain=True)
    if found in (one_pass, trial.in_one_pass(plain=False)):
        return "the same items as in one pass over parsed answers, which the codec refuses"
    if trial.asked.view in ("documents", "fields") and not (wanted.declared and one_pass.declared):
        return "a malformed system attribute that only the codec reads"
    return None


def wrong_with(found: Outcome, wanted: Outcome, *, possible: bool) -> str | None:
    """Return what is wrong with the outcome of readers, by that of the codec; None if nothing is.

    `possible` says that DynamoDB could have sent the answers, so no error may be one that the layer does not raise.
    """
    for number, (one, other) in enumerate(zip_longest(found.returned, wanted.returned)):
        if one != other:
            return f"{one} instead of {other} at {number}, and {found.error} instead of {wanted.error}"
    if found.error != wanted.error:
        return f"{found.error} instead of {wanted.error}"
    if possible and not found.declared:
        return f"{found.error} is not an error of the layer"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status: 1 if anything was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m dynashard_checks.fuzz_readers", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--answers", type=int, default=1_000_000, help="how many answers (default: 1,000,000)")
    parser.add_argument("--seed", type=int, default=0, help="of all calls (default: 0)")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first call (default: 0)")
    given = parser.parse_args(arguments)
    fuzzer, began, number = Fuzzer(given.seed), time.process_time(), given.first
    report = fuzzer.report
    with watched():
        while report.answers < given.answers and len(report.failures) < SHOWN:
            fuzzer.call(number)
            number += 1
            if number % _STEP == 0:
                print(f"{report.answers} answers, {len(report.failures)} wrong", file=sys.stderr)
    print(*report.table(report.kinds), "", *report.table(report.views), "", sep="\n")
    for outcome, count in sorted(report.outcomes.items()):
        print(f"{count:10,d}  {outcome}")
    print(
        f"{report.answers:,} answers in calls {given.first} to {number - 1} of seed {given.seed}: "
        f"{len(report.failures)} wrong, {time.process_time() - began:.0f} s of CPU"
    )
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
