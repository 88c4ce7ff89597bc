"""How far a load has come, kept beside the file, so that it can go on after any end."""

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Self

import orjson
from ksuid import Ksuid

from tools.failure import CommandError


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A load under way.

    Attributes:
        entity: what is loaded.
        tenant: for whom, if the command line said so.
        series: makes the ids of rows that bring none: the same line has the same id however often it is written.
        begun: when the load began, in epoch seconds: the time in those ids.
        line: everything up to this line is written or was refused.
        fingerprint: of the file up to that line.
        written: items written.
        refused: lines refused.
    """

    entity: str
    tenant: str | None
    series: str
    begun: int
    line: int = 0
    fingerprint: str = ""
    written: int = 0
    refused: int = 0

    @classmethod
    def beginning(cls, entity: str, tenant: str | None, clock: Callable[[], float] = time.time) -> Self:
        """A load that has not begun."""
        return cls(entity, tenant, secrets.token_hex(16), int(clock()))

    def id_of(self, line: int) -> str:
        """The id of an item whose row brings none."""
        payload = blake2b(f"{self.series}:{line}".encode(), digest_size=16).digest()
        return str(Ksuid(datetime.fromtimestamp(self.begun, UTC), payload))

    def at(self, line: int, fingerprint: str, *, written: int, refused: int) -> "Checkpoint":
        """The load after it has come to a line."""
        return replace(self, line=line, fingerprint=fingerprint, written=written, refused=refused)


class CheckpointFile:
    """A checkpoint on disk. Without a path nothing is kept, as for standard input."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def open(self, entity: str, tenant: str | None, *, resume: bool) -> Checkpoint:
        """The checkpoint to go on from, or a new one.

        Raises:
            CommandError: there is one and the caller does not want to resume; or it is of another load.
        """
        if self._path is None or not self._path.exists():
            return Checkpoint.beginning(entity, tenant)
        if not resume:
            raise CommandError(
                f"an earlier load of this file did not finish: go on with --resume, or remove {self._path.name} to "
                "start again (rows without ids become new items then)"
            )
        try:
            found = Checkpoint(**orjson.loads(self._path.read_bytes()))
        except (TypeError, orjson.JSONDecodeError) as error:
            raise CommandError(f"{self._path.name} is damaged; remove it to start again") from error
        if (found.entity, found.tenant) != (entity, tenant):
            raise CommandError(f"{self._path.name} is of a load of {found.entity} for tenant {found.tenant}")
        return found

    def keep(self, checkpoint: Checkpoint) -> None:
        """Write it so that any end leaves the old or the new one."""
        if self._path is None:
            return
        draft = self._path.with_name(self._path.name + ".new")
        with draft.open("wb") as file:
            file.write(orjson.dumps(asdict(checkpoint)))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)

    def remove(self) -> None:
        """The load is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
