"""The logs of a stack, and how queries run over them: in CloudWatch, or here over the lines of a local stack."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from dynashard_cdk.saved_queries import QUERIES
from dynashard_local.errors import LocalStackError
from dynashard_local.logs import API_LOG, BEFORE, CHANGES_LOG, COMMANDS_LOG, RESHARD_LOG, WRITER_LOG
from dynashard_local.settings import Settings
from dynashard_tools.environments import Environment, aws_errors, environment_named, is_local
from dynashard_tools.failure import CommandError
from dynashard_tools.logs.cloudwatch import run, saved
from dynashard_tools.logs.insights import Record, Row, record_of, run_query

FILES: Final[Mapping[str, str]] = {
    "api": API_LOG,
    "commands": COMMANDS_LOG,
    "writer": WRITER_LOG,
    "changes": CHANGES_LOG,
    "advance": RESHARD_LOG,
    "work": RESHARD_LOG,
    "watch": RESHARD_LOG,
}
"""The logs of `make run` in `DATA_DIR`, by the names that saved queries use."""
GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "access": ("Api", "AccessLog"),
    "api": ("Api", "ApiLog"),
    "commands": ("Commands", "CommandsLog"),
    "writer": ("Writer", "WorkerLog"),
    "changes": ("Changes", "FollowLog"),
    "advance": ("Reshard", "AdvanceLog"),
    "work": ("Reshard", "WorkLog"),
    "watch": ("Reshard", "WatchLog"),
}
"""The stack of each log group, and how its logical id begins."""
_GATEWAY: Final = "access"
"""The log of the gateway's access lines, which no local gateway writes: not that of `make run`, and no local AWS."""
_WRITTEN: Final = re.compile(r'"timestamp": ?"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})([+-]\d{4})"')
_MEASURED: Final = re.compile(r'"Timestamp": ?(\d{13})')

Window = tuple[int, int]
"""From when until when, in epoch seconds."""


class Logs(Protocol):
    """The logs of a stack."""

    def names(self) -> list[str]:
        """Return the names of the saved queries."""

    def run(self, name: str, window: Window) -> list[Row]:
        """Run a saved query."""

    def ask(self, text: str, window: Window) -> list[Row]:
        """Run a query over all logs."""


def logs_of(environment: str | None) -> Logs:
    """Return the logs of the local stack, or of a deployed environment.

    Raises:
        CommandError: they cannot be found.
    """
    if environment is None:
        return Lines(_local_reader())
    found = environment_named(environment)
    client = found.client("logs")
    if is_local(client.meta.endpoint_url):
        groups = _groups(found)
        if not groups:
            raise CommandError(f"{environment} has no logs: deploy its stacks{found.unknown}")
        return Lines(_GroupReader(client, groups).read)
    return CloudWatch(client, saved(client, environment, found.unknown))


@dataclass(frozen=True, slots=True)
class CloudWatch:
    """Logs in CloudWatch, with the definitions of the saved queries."""

    client: Any
    queries: Mapping[str, Mapping[str, Any]]

    def names(self) -> list[str]:
        """Return the names of the saved queries."""
        return sorted(self.queries)

    def run(self, name: str, window: Window) -> list[Row]:
        """Run a saved query. Cost: what it scans."""
        return run(self.client, self.queries[name], window)

    def ask(self, text: str, window: Window) -> list[Row]:
        """Run a query over the logs of all saved queries. Cost: what it scans."""
        groups = sorted({group for query in self.queries.values() for group in query["logGroupNames"]})
        return run(self.client, {"name": "of this command", "queryString": text, "logGroupNames": groups}, window)


Read = Callable[[Sequence[str], Window], Iterator[Record]]
"""Yields the lines of logs within a window."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Logs of a local stack, over which the saved queries run in this process."""

    read: Read

    def names(self) -> list[str]:
        """Return the names of the saved queries."""
        return sorted(QUERIES)

    def run(self, name: str, window: Window) -> list[Row]:
        """Run a saved query. Raises `CommandError` if it reads the gateway's log alone."""
        if set(QUERIES[name].logs) == {_GATEWAY}:
            raise CommandError(f"{name} reads the access log of the gateway, which no gateway of a local stack writes")
        return run_query(QUERIES[name].text, self._records(QUERIES[name].logs, window))

    def ask(self, text: str, window: Window) -> list[Row]:
        """Run a query over all logs."""
        return run_query(text, self._records(list(GROUPS), window))

    def _records(self, logs: Sequence[str], window: Window) -> list[Record]:
        return sorted(self.read(logs, window), key=lambda record: str(record["@timestamp"]))


def _local_reader() -> Read:
    try:
        folder = Settings.from_env(os.environ).data_dir
    except LocalStackError as error:
        raise CommandError(str(error)) from error
    if not any((folder / name).exists() for name in FILES.values()):
        raise CommandError(
            f"no local stack has written logs in {folder}: start it with `make run`; if its data are elsewhere, set "
            "DATA_DIR as for `make run`; for a deployed environment, give --env"
        )

    def read(logs: Sequence[str], window: Window) -> Iterator[Record]:
        for name in dict.fromkeys(FILES[log] for log in logs if log in FILES):
            for path in (folder / f"{name}{BEFORE}", folder / name):
                if path.exists():
                    yield from _lines_of(path, name.removesuffix(".log"), window)

    return read


def _lines_of(path: Path, log: str, window: Window) -> Iterator[Record]:
    """Yield the lines of a file. A line without a time, such as one of a traceback, has that of the line before."""
    at = 0.0
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            at = _time_of(line) or at or path.stat().st_mtime
            if window[0] <= at <= window[1]:
                yield record_of(log, _shown(at), line.rstrip("\n"))


def _time_of(line: str) -> float | None:
    if found := _WRITTEN.search(line):
        return datetime.strptime(f"{found[1]}.{found[2]}{found[3]}", "%Y-%m-%d %H:%M:%S.%f%z").timestamp()
    found = _MEASURED.search(line)
    return None if found is None else int(found[1]) / 1000


def _shown(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _groups(environment: Environment) -> dict[str, str]:
    found = {stack: environment.resources(stack, "AWS::Logs::LogGroup") for stack, _ in set(GROUPS.values())}
    return {
        name: group
        for name, (stack, begin) in GROUPS.items()
        for logical_id, group in found[stack].items()
        if logical_id.startswith(begin)
    }


@dataclass(frozen=True, slots=True)
class _GroupReader:
    """Reads log groups of a local AWS."""

    client: Any
    groups: Mapping[str, str]

    def read(self, logs: Sequence[str], window: Window) -> Iterator[Record]:
        for log in logs:
            if log not in self.groups:
                continue
            request = {
                "logGroupName": self.groups[log],
                "startTime": window[0] * 1000,
                "endTime": window[1] * 1000,
            }
            with (
                aws_errors(f"the log {self.groups[log]} cannot be read"),
                # A function that never ran may have no log yet.
                suppress(self.client.exceptions.ResourceNotFoundException),
            ):
                for page in self.client.get_paginator("filter_log_events").paginate(**request):
                    for event in page["events"]:
                        yield record_of(log, _shown(event["timestamp"] / 1000), event["message"].rstrip("\n"))


def window_of(minutes: int, now: float | None = None) -> Window:
    """Return the last so many minutes."""
    end = int(time.time() if now is None else now) + 1
    return end - minutes * 60, end
