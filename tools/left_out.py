"""Stored items that a command leaves out, because they do not fit their declaration: named on standard error."""

import sys
from collections.abc import Iterable

import typer

from dynashard.entity import Undecodable
from tools.failure import WITH_ERRORS


class LeftOut:
    """Names items as they are met; `end` ends the command with a status of its own if there were any."""

    def __init__(self) -> None:
        self.number = 0

    def add(self, undecodable: Iterable[Undecodable]) -> None:
        """Name items that are left out."""
        for each in undecodable:
            self.number += 1
            print(f"left out: {each.partition_key} / {each.sort_key}: {each.problem}", file=sys.stderr)

    def end(self) -> None:
        """End the command with status 3 if items were left out."""
        if self.number:
            raise typer.Exit(WITH_ERRORS)
