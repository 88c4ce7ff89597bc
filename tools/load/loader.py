"""From rows to stored items: checked one by one, written in batches, with a checkpoint after each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pydantic import ValidationError

from dynashard import Collection, Entity
from dynashard.errors import EngineError, InputError
from tools.failure import CommandError
from tools.load.checkpoint import Checkpoint, CheckpointFile
from tools.load.rows import Lines, Row

BATCH: Final = 500
TENANT: Final = "tenant_id"

E = TypeVar("E", bound=Entity)


@dataclass(frozen=True, slots=True)
class LineError:
    """A row that cannot be loaded."""

    line: int
    field: str | None
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field + ': ' if self.field else ''}{self.reason}"


class BadLineError(CommandError):
    """A row that cannot be loaded has ended the load."""


@dataclass(slots=True)
class Load(Generic[E]):
    """One load.

    Attributes:
        items: where the items go.
        state: where the checkpoint is kept.
        checkpoint: how far the load has come.
        stop_on_error: end at the first bad line; otherwise leave bad lines out.
        dry_run: check, but write nothing.
        report: told every bad line.
        advance: told after every batch.
    """

    items: Collection[E]
    state: CheckpointFile
    checkpoint: Checkpoint
    stop_on_error: bool
    dry_run: bool
    report: Callable[[LineError], None]
    advance: Callable[[Lines, Checkpoint], None]

    def run(self, lines: Lines, rows: Iterator[Row]) -> Checkpoint:
        """Load all rows after the checkpoint.

        Returns:
            The checkpoint at the end.

        Raises:
            BadLineError: a row cannot be loaded; everything before it is written.
            CommandError: the file cannot be read on, has changed before the checkpoint, or the table refuses.

        Cost: 1 write unit for each KB of an item and index it stands in; a round trip for 25 items, 16 at a time.
        """
        self._keep()
        for good, bad, line, fingerprint in self._batches(lines, rows):
            self._write(good)
            for error in bad:
                self.report(error)
            if bad and self.stop_on_error:
                raise BadLineError(f"stopped at line {bad[0].line}; {self._so_far(len(good))}")
            written, refused = self.checkpoint.written + len(good), self.checkpoint.refused + len(bad)
            self.checkpoint = self.checkpoint.at(line, fingerprint, written=written, refused=refused)
            self._keep()
            self.advance(lines, self.checkpoint)
        if not self.dry_run:
            self.state.remove()
        return self.checkpoint

    def _batches(self, lines: Lines, rows: Iterator[Row]) -> Iterator[tuple[list[E], list[LineError], int, str]]:
        """Items and bad lines, a batch at a time, with the line where it ends and the fingerprint up to there."""
        seen: set[int] = set()
        good: list[E] = []
        bad: list[LineError] = []
        last = 0
        for row in rows:
            last = row.last_line
            found = self._check(row, seen)
            if last <= self.checkpoint.line:
                self._check_unchanged(lines, last)
                continue
            if isinstance(found, LineError):
                bad.append(found)
            elif found is not None:
                good.append(found)
            if len(good) + len(bad) >= BATCH or (bad and self.stop_on_error):
                yield good, bad, last, lines.fingerprint()
                good, bad = [], []
        if good or bad:
            yield good, bad, last, lines.fingerprint()

    def _check_unchanged(self, lines: Lines, line: int) -> None:
        if line == self.checkpoint.line and lines.fingerprint() != self.checkpoint.fingerprint:
            raise CommandError(
                f"the file has changed above line {line}, which is written; remove the state file to start again"
            )

    def _check(self, row: Row, seen: set[int]) -> E | LineError | None:
        """The item of a row, None for an empty line."""
        if row.fields is None:
            return None if row.reason is None else LineError(row.line, None, row.reason)
        fields = dict(row.fields)
        entity, tenant = self.items.entity, self.checkpoint.tenant
        if tenant is not None and fields.setdefault(TENANT, tenant) != tenant:
            return LineError(row.line, TENANT, f"{fields[TENANT]!r} is not the tenant of this load, {tenant!r}")
        for name in entity.generated_fields - fields.keys():
            fields[name] = self.checkpoint.id_of(row.line)
        try:
            item: E = entity.model.model_validate(fields)
            self.items.check(item)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            return LineError(row.line, ".".join(str(part) for part in first["loc"]) or None, first["msg"])
        except InputError as error:
            return LineError(row.line, error.field, str(error))
        key = hash(entity.key_of(item))
        if key in seen:
            return LineError(row.line, None, "an earlier line has the same key")
        seen.add(key)
        return item

    def _write(self, items: Sequence[E]) -> None:
        if self.dry_run or not items:
            return
        try:
            self.items.batch_write(put=items)
        except EngineError as error:
            raise CommandError(f"{error}; {self._so_far(0)}") from error

    def _keep(self) -> None:
        if not self.dry_run:
            self.state.keep(self.checkpoint)

    def _so_far(self, more: int) -> str:
        if self.dry_run:
            return "nothing was written"
        return f"{self.checkpoint.written + more} items are written; --resume goes on from here"
