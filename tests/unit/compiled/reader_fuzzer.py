"""Random answers that compiled readers and the reference codec read; no socket is opened.

Collections of the sample domain's entities, and of some with fields of every type, are asked for entities, fields and
API documents by page, for scans and for batches. Most bodies of answers are as DynamoDB sends them, with one or two odd
things in them. What compiled readers make of the bytes must be what the reference makes of the parsed answers: the same
items, mappings, texts and cursors, or the same error.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest
from random import Random
from typing import Any, Final

from dynashard import Dynashard, EntityDefinition
from dynashard.entity import IndexDefinition
from dynashard.placement import UNSHARDED
from dynashard.runtime import Runtime
from dynashard.topology import View
from tests.unit.compiled.reader_entities import Subject, subjects
from tests.unit.compiled.reader_oddities import BEYOND, NOW, TABLE
from tests.unit.compiled.reader_trials import Asked, Outcome, Script, Trial

_CURSOR_KEYS: Final = ("the key of the cursors of this command",)
_INSTANT: Final = Runtime(lambda: NOW, lambda _: None, lambda: 0.0)


class _Counts:
    """A topology in which nothing moves."""

    def __init__(self, count: int) -> None:
        self._count = count

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        del partition
        return View(UNSHARDED if entity.shards is None else self._count)

    def index_view(self, _: Any, index: IndexDefinition) -> View:
        return View(UNSHARDED if index.shards is None else self._count)

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


class Fuzzer:
    """Makes calls by number, each from its own random numbers. They must be `watched`."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._subjects = subjects()
        self.report = Report()

    def call(self, number: int) -> None:
        """Make one call by the reference and by compiled readers, and report what differs."""
        random = Random(f"{self._seed}:{number}")
        subject = random.choice(self._subjects)
        script = Script(random, subject)
        counts = _Counts(random.choice([1, 1, 2]))
        db = Dynashard(script, table=TABLE, topology=counts, cursor_keys=_CURSOR_KEYS, runtime=_INSTANT)
        trial = Trial(script, db.collection(subject.model), subject, _asked(random, subject))
        wanted, found = trial.by_reference(plain=True), trial.by_readers()
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


def _asked(random: Random, subject: Subject) -> Asked:
    view = random.choice(
        ["entities", "entities", "fields", "fields", "documents", "documents", "scan", "batch", "batch"]
    )
    of_index = view != "batch" and subject.listings and random.getrandbits(1)
    index, partition = random.choice(subject.listings) if of_index else (None, subject.partition)
    arguments: dict[str, Any] = {"limit": random.choice([1, 2, 2, 3, 5])}
    arguments |= random.choice([{}, {}, {}, {"order": "shard"}])
    near, far = 1, random.randrange(2, 6)
    if view != "scan" and not random.randrange(4):
        arguments["direction"] = "desc"
        near, far = 999_999, 999_999 - far
    low, high = (f"{each:06d}" for each in sorted([near, far]))
    if index is None:
        arguments |= random.choice([{}, {}, {}, {"start": low, "end": high}, {"prefix": low[:5]}])
    fields = None
    if view == "fields" or (view == "scan" and not random.randrange(3)):
        fields = random.choice(subject.selections)
    keys = random.sample(subject.keys, random.randrange(1, 4))
    return Asked(view, index, partition, arguments, fields, keys, random.choice([1, 2]))


def _allowed(trial: Trial, found: Outcome, wanted: Outcome) -> str | None:
    """Why compiled readers may differ from the reference about malformed bodies; None if they may not."""
    if trial.by_reference(plain=False) == found:
        return f"refused, {BEYOND}"
    parsed = trial.of_parsed(plain=True)
    if found in (parsed, trial.of_parsed(plain=False)):
        return "the same items as of parsed answers, which the reference refuses"
    if trial.asked.index is not None and not wanted.declared:
        return "a malformed key that only the reference reads"
    if trial.asked.view in ("documents", "fields") and not (wanted.declared and parsed.declared):
        return "a malformed system attribute that only the reference reads"
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
