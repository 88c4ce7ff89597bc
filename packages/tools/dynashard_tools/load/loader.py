"""Loads rows: checks them one by one, and writes their items in batches, with a checkpoint after each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from dynashard import Collection, Entity
from dynashard.errors import (
    EngineError,
    InputError,
    NotUniqueError,
    ThrottledError,
    UndecodableItemError,
    UnprocessedError,
)
from dynashard_serving.documents import TENANT
from dynashard_serving.tenants import DEFAULT_TENANTS, TenantRule
from dynashard_tools.counting import plural
from dynashard_tools.failure import CommandError, on_interrupt
from dynashard_tools.load.checkpoint import Checkpoint, CheckpointFile
from dynashard_tools.load.exported import ExportedRows, is_account_line
from dynashard_tools.load.old_keys import BEGIN_WITH_MORE, OldKeys
from dynashard_tools.load.rows import Lines, Row

BATCH: Final = 400
"""Sixteen requests of 25 items: as many as go out at once."""

BATCH_BYTES: Final = 64 * 1024 * 1024
"""Lines that are held in memory together, if they are long: items of an export have their attachments."""

Refusal = NotUniqueError | UndecodableItemError
"""Why one item of a batch cannot be stored: another has its value, or a row that cannot be replaced has its key."""

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


@dataclass(frozen=True, slots=True)
class Position:
    """The end of a row: its line, and the fingerprint of the file up to there."""

    line: int = 0
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Batch(Generic[E]):
    """Successive rows: the items of the good ones with their lines, the errors of the bad ones, and where they end."""

    good: list[tuple[int, E]]
    bad: list[LineError]
    end: Position
    stop: LineError | None = None
    """The error of the row after them, if it ends the load."""


@dataclass(slots=True)
class Load(Generic[E]):
    """One load.

    Attributes:
        stop_on_error: end at the first bad line; otherwise leave bad lines out.
        report: called with every bad line.
        advance: called after every batch.
        old: counts items whose epoch is not the newest of their partition.
        exported: what makes rows of the lines of an export; None if the file is none.
        batch_bytes: a batch ends with the row that brings its lines to so many bytes.
    """

    items: Collection[E]
    state: CheckpointFile
    checkpoint: Checkpoint
    stop_on_error: bool
    dry_run: bool
    report: Callable[[LineError], None]
    advance: Callable[[Lines, Checkpoint], None]
    old: OldKeys
    tenants: TenantRule = DEFAULT_TENANTS
    exported: ExportedRows[E] | None = None
    batch_bytes: int = BATCH_BYTES
    _lines_of_keys: dict[int, int] = field(default_factory=dict)
    """By a 64-bit hash of the key, so that millions of rows fit in memory without collisions."""
    _replaces: bool = False
    """Whether a row may have the key of a stored item: a file names its key, or an earlier run has written it."""

    def run(self, lines: Lines, rows: Iterator[Row]) -> Checkpoint:
        """Load all rows after the checkpoint.

        Returns:
            The checkpoint at the end.

        Raises:
            BadLineError: a row cannot be loaded; everything before it is written, nothing after it.
            CommandError: the file has changed above the checkpoint, or the engine refuses a write.
            CommandInterruptedError: Ctrl-C.

        Cost: 1 write unit for each KB of an item and index it stands in; a round trip for 25 items, 16 at a time. If
        not every key is made for this load, 1 read unit more for each item, and a round trip for 100. With random
        placement, 1 read unit more for each item and shard.
        """
        self._replaces = self.state.kept
        # "at least", because a batch may be under way.
        with on_interrupt(lambda: f"at least {self._so_far()}"):
            for batch in self._batches(lines, rows):
                taken = self._write(batch)
                bad = sorted([*batch.bad, *taken], key=lambda error: error.line)
                for error in bad:
                    self.report(error)
                if taken and self.stop_on_error:
                    # Rows after it may be written too: what is unique shows only when it is.
                    raise BadLineError(f"stopped at line {bad[0].line}; at least {self._so_far()}")
                self.checkpoint = replace(
                    self.checkpoint,
                    line=batch.end.line,
                    fingerprint=batch.end.fingerprint,
                    written=self.checkpoint.written + len(batch.good) - len(taken),
                    refused=self.checkpoint.refused + len(bad),
                )
                if batch.good or bad:
                    # A load that ends at its first line needs no checkpoint: it is started again.
                    self._keep()
                self.advance(lines, self.checkpoint)
                if batch.stop is not None:
                    self.report(batch.stop)
                    raise BadLineError(f"stopped at line {batch.stop.line}; {self._so_far()}")
            if not self.dry_run:
                self.state.remove()
        return self.checkpoint

    def _batches(self, lines: Lines, rows: Iterator[Row]) -> Iterator[Batch[E]]:
        good: list[tuple[int, E]] = []
        bad: list[LineError] = []
        end = Position()
        unchanged = False
        begun = lines.bytes_read
        for row in rows:
            found = self._check(row)
            if row.last_line > self.checkpoint.line:
                if not unchanged:
                    self._require_unchanged(end)
                    unchanged = True
                if isinstance(found, LineError):
                    if row.final or self.stop_on_error:
                        yield Batch(good, bad, end, stop=found)
                        return
                    bad.append(found)
                elif found is not None:
                    good.append((row.line, found))
            end = Position(row.last_line, lines.fingerprint())
            held = len(good) + len(bad)
            if held >= BATCH or (held and lines.bytes_read - begun >= self.batch_bytes):
                yield Batch(good, bad, end)
                good, bad, begun = [], [], lines.bytes_read
        if not unchanged:
            self._require_unchanged(end)
        if good or bad:
            yield Batch(good, bad, end)

    def _require_unchanged(self, end: Position) -> None:
        """Refuse a file that has changed above the checkpoint, because ids are made of lines."""
        kept = self.checkpoint
        if end != Position(kept.line, kept.fingerprint):
            raise CommandError(
                f"the file has changed above line {kept.line}, up to which it was loaded: restore it, or remove the "
                "checkpoint to start again (rows without ids become new items then)"
            )

    def _check(self, row: Row) -> E | LineError | None:
        """Return the item of a row; None for an empty line."""
        if row.fields is None:
            return None if row.reason is None else LineError(row.line, None, row.reason)
        entity = self.items.entity
        fields = self._completed(row.line, row.fields)
        if isinstance(fields, LineError):
            return fields
        try:
            item: E = self.exported.item(fields) if self.exported else entity.model.model_validate(fields)
            self.items.check(item)
        except ValidationError as error:
            return _line_error(row.line, error)
        except InputError as error:
            return LineError(row.line, error.field, str(error))
        earlier = self._lines_of_keys.setdefault(hash(entity.key_of(item)), row.line)
        if earlier != row.line:
            return LineError(row.line, None, f"line {earlier} has the same key")
        return item

    def _completed(self, line: int, given: dict[str, Any]) -> dict[str, Any] | LineError:
        """Return a row's fields with tenant and ids."""
        fields = dict(given)
        entity, tenant = self.items.entity, self.checkpoint.tenant
        if is_account_line(entity, given):
            return LineError(line, None, "is a line of the export of an account; load it with --from-export")
        for name in sorted(entity.server_fields & fields.keys()):
            return LineError(line, name, "is set by the server; leave it out, or load an export with --from-export")
        if tenant is not None and fields.setdefault(TENANT, tenant) != tenant:
            return LineError(line, TENANT, "differs from the tenant of this load")
        if TENANT not in fields and TENANT in entity.partition_fields:
            return LineError(line, TENANT, "is missing; give one for all rows with --tenant, or one in each row")
        if isinstance(fields.get(TENANT), str) and not self.tenants.allows(fields[TENANT]):
            return LineError(line, TENANT, f"is not a tenant: it must match {self.tenants.pattern}")
        made = entity.generated_fields - fields.keys()
        self._replaces = self._replaces or made.isdisjoint(entity.key_fields)
        for name in made:
            fields[name] = self.checkpoint.id_of(line)
        return fields

    def _write(self, batch: Batch[E]) -> list[LineError]:
        """Store the items of a batch; return the rows that were left out, because they are refused."""
        if self.dry_run or not batch.good:
            return []
        if self.checkpoint.line == 0:
            # From here on items may be written, and a resumed load must make the same ids.
            self._keep()
        lines, items = zip(*batch.good, strict=True)
        self.old.count(items)
        try:
            taken = self._store(items)
        except EngineError as error:
            done = f"{str(error).removesuffix('.')}; at least {self._so_far()}"
            if isinstance(error, ThrottledError | UnprocessedError) and self.items.entity.time is not None:
                done = f"{done}. {BEGIN_WITH_MORE}"
            raise CommandError(done) from error
        return [LineError(lines[at], _fields_of(error), str(error)) for at, error in taken.items()]

    def _store(self, items: Sequence[E]) -> dict[int, Refusal]:
        """Write items; they replace items with the same keys.

        Return the refusals of those that are not unique, and of those whose keys have rows that cannot be replaced.
        """
        new, taken = dict(enumerate(items)), dict[int, Refusal]()
        if not self.items.entity.rule.fixed:
            # With random placement a batch would draw another shard for an item that an earlier load has written.
            found = self.items.batch_get(items, consistent=True)
            there = {at for at, stored in enumerate(found) if stored is not None} | found.left_out.keys()
            for at in sorted(there):
                item = new.pop(at)
                try:
                    self.items.put(item)
                except UndecodableItemError as refused:
                    taken[at] = refused
        # What stored items have besides their declared attributes is kept, so they are read first.
        outcomes = self.items.try_batch_write(put=[*new.values()], whole=not self._replaces)
        for at, error in zip(new, outcomes, strict=True):
            if isinstance(error, Refusal):
                taken[at] = error
            elif error is not None:
                raise error
        return taken

    def _keep(self) -> None:
        if not self.dry_run:
            self.state.keep(self.checkpoint)

    def _so_far(self) -> str:
        if self.dry_run:
            return "0 items are written"
        done = f"{plural(self.checkpoint.written, 'item is', 'items are')} written"
        return f"{done}; --resume continues from here" if self.state.kept else done


def _fields_of(error: Refusal) -> str | None:
    return ", ".join(error.fields) if isinstance(error, NotUniqueError) else None


def _line_error(line: int, error: ValidationError) -> LineError:
    first = error.errors(include_url=False, include_input=False)[0]
    reason = _REASONS.get(first["type"]) or first["msg"]
    return LineError(line, ".".join(str(part) for part in first["loc"]) or None, reason)


_REASONS: Final = {"missing": "is missing", "extra_forbidden": "is not a field"}
