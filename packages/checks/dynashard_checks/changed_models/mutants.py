"""Broken variants of the rules for versions and backfills, each of which a schedule must catch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from dynashard.backfills import backfill, index_keys, migration, movements
from dynashard.reads import entries
from dynashard.repository import conditions, replacement, write, write_builder
from dynashard.repository.conditions import UNMARKED, Condition
from dynashard.topology import leased

Patch = tuple[Any, str, Any]


def _unguarded(*_: Any, **__: Any) -> Condition:
    return UNMARKED


def _inexact(version: int, *, exactly: bool) -> Condition:
    del exactly
    return conditions.of_version(version, exactly=False)


def _unchanged(_: Any) -> Condition:
    return UNMARKED & Condition("attribute_exists(PK)")


def _never_moves(made: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        self.possible = False

    return init


MUTANTS: Final[dict[str, Callable[[], list[Patch]]]] = {
    "a write does not look at the stored version": lambda: [(write, "of_version", _unguarded)],
    "an update in part takes an item of an earlier version": lambda: [(write, "of_version", _inexact)],
    "only what differs of an upgraded item is written": lambda: [
        (replacement, "upgraded_from", lambda _: None),
        (write_builder, "upgraded_from", lambda _: None),
        (write, "of_version", _inexact),
    ],
    "items that move during a backfill are not looked for": lambda: [
        (movements.Movements, "__init__", _never_moves(movements.Movements.__init__)),
    ],
    "a migration writes over what was written since it read": lambda: [(migration, "unchanged", _unchanged)],
    "an index build writes keys of fields that have changed": lambda: [(index_keys, "unchanged", _unchanged)],
    "every index counts as complete": lambda: [(leased, "_is_complete", lambda *_: True)],
    "items of earlier versions are filtered as they are stored": lambda: [
        (entries.VisibleRows, "filtered", lambda _, visible: visible),
    ],
    "entries are compared with fields as they are stored": lambda: [
        (entries, "_readable", lambda _, row: row),
    ],
    "a backfill that was killed counts as complete": lambda: [
        (backfill, "open_tasks", lambda progress, _, tasks: () if progress else tuple(range(tasks))),
    ],
}
"""The variants by name: what each replaces."""


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Break a rule for the time of the block."""
    patches = [patch.object(*each) for each in MUTANTS[name]()]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()
