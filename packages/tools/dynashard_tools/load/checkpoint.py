"""Checkpoints of loads, kept next to the file, so that a load can be resumed after any end."""

import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final, Self

import orjson
from ksuid import Ksuid
from pydantic import TypeAdapter, ValidationError

from dynashard_tools.failure import CommandError
from dynashard_tools.files import replacing


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a load has come.

    Attributes:
        tenant: the tenant that the command line names, if any.
        series: seed of the ids of rows without one: the same line has the same id however often it is written.
        begun: when the load began, in epoch seconds: the time in those ids.
        line: everything up to this line is written or was refused.
        fingerprint: of the file up to that line.
    """

    target: str
    entity: str
    tenant: str | None
    series: str
    begun: int
    line: int
    fingerprint: str
    written: int
    refused: int

    @classmethod
    def beginning(cls, target: str, entity: str, tenant: str | None, clock: Callable[[], float] = time.time) -> Self:
        """Return the checkpoint of a load that has not begun."""
        series, begun = secrets.token_hex(16), int(clock())
        return cls(target, entity, tenant, series, begun, line=0, fingerprint="", written=0, refused=0)

    def id_of(self, line: int) -> str:
        """Return the id of the item of a row without one."""
        payload = blake2b(f"{self.series}:{line}".encode(), digest_size=16).digest()
        return str(Ksuid(datetime.fromtimestamp(self.begun, UTC), payload))


_STORED: Final = TypeAdapter(Checkpoint)


class CheckpointFile:
    """A checkpoint on disk. Without a path, as for standard input, nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @property
    def kept(self) -> bool:
        """Whether a checkpoint is on disk."""
        return self._path is not None and self._path.exists()

    def open(self, target: str, entity: str, tenant: str | None, *, resume: bool) -> Checkpoint:
        """Return the stored checkpoint if `resume` is set, else a new one.

        Raises:
            CommandError: without `resume`, a checkpoint exists; with it, none exists, or it is of another load, or it
                cannot be read.
        """
        if not resume:
            if self._path is not None and self._path.exists():
                self._refuse_other(self._read(self._path), target, entity, tenant)
                raise CommandError(
                    f"an earlier load of this file did not finish: continue with --resume, or remove {self._path} to "
                    "start again (rows without ids become new items then)"
                )
            return Checkpoint.beginning(target, entity, tenant)
        if self._path is None:
            raise CommandError("--resume needs the checkpoint of the load: name its file with --state")
        found = self._read(self._path)
        self._refuse_other(found, target, entity, tenant)
        return found

    def _refuse_other(self, found: Checkpoint, target: str, entity: str, tenant: str | None) -> None:
        if (found.target, found.entity, found.tenant) != (target, entity, tenant):
            tenants = "with tenants in its rows" if found.tenant is None else f"for tenant {found.tenant}"
            raise CommandError(
                f"{self._path} is of a load of {found.entity} {tenants} into {found.target}: resume it "
                "there, or name another file with --state"
            )

    @staticmethod
    def _read(path: Path) -> Checkpoint:
        try:
            return _STORED.validate_json(path.read_bytes(), strict=True)
        except FileNotFoundError as error:
            raise CommandError(f"there is no unfinished load to resume: {path} does not exist") from error
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise CommandError(
                f"{path} is damaged; remove it to start again (rows without ids become new items then)"
            ) from error

    def keep(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint. A crash leaves the old or the new one. Raises `CommandError` if it cannot be written."""
        if self._path is None:
            return
        try:
            with replacing(self._path) as file:
                file.write(orjson.dumps(asdict(checkpoint)))
        except CommandError as error:
            raise CommandError(f"{error}; name another file with --state") from error

    def remove(self) -> None:
        """Remove the checkpoint: the load is complete."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
