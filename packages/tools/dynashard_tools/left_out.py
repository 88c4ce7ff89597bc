"""Stored items that a command leaves out, because they do not fit their declaration: named on standard error."""

import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

import typer

from dynashard.entity import Undecodable
from dynashard.reads import Page
from dynashard_tools.failure import WITH_ERRORS

T = TypeVar("T")


class LeftOut:
    """Names items as they are met; `end` ends the command with a status of its own if there were any."""

    def __init__(self) -> None:
        self._named: set[tuple[str, str]] = set()

    def add(self, undecodable: Iterable[Undecodable]) -> None:
        """Name items that are left out, each once."""
        for each in undecodable:
            key = (each.partition_key, each.sort_key)
            if key in self._named:
                continue
            self._named.add(key)
            print(f"left out: {each.partition_key} / {each.sort_key}: {each.problem}", file=sys.stderr)

    def items_of(self, page: Page[T]) -> Sequence[T]:
        """Return the items of a page, and name those that it leaves out."""
        self.add(page.undecodable)
        return page.items

    def end(self) -> None:
        """End the command with status 3 if items were left out."""
        if self._named:
            raise typer.Exit(WITH_ERRORS)
