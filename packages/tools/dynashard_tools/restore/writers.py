"""Stops the functions that write, and starts them again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

PARTS: Final = ("Api", "Commands", "Writer", "Changes")
"""The stacks whose functions write items."""


@dataclass(frozen=True, slots=True)
class Writers:
    """The functions that write.

    Attributes:
        client: boto3's client of Lambda.
        names: the functions, by the setting of their concurrency.
        concurrency: what they reserve while they run; empty if they reserve nothing.
    """

    client: Any
    names: Mapping[str, str]
    concurrency: Mapping[str, int]

    def stopped(self) -> list[str]:
        """Return those that are stopped, by their settings. Cost: 1 GetFunctionConcurrency each."""
        return [part for part, name in self.names.items() if self._reserved(name) == 0]

    def stop(self) -> None:
        """Let none of them run: a concurrency of 0, which no deployment removes."""
        for name in self.names.values():
            self.client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)

    def start(self) -> None:
        """Give those that are stopped the concurrency of the settings."""
        for part in self.stopped():
            name, reserved = self.names[part], self.concurrency.get(part)
            if reserved is None:
                self.client.delete_function_concurrency(FunctionName=name)
            else:
                self.client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=reserved)

    def _reserved(self, name: str) -> int | None:
        found: int | None = self.client.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
        return found
