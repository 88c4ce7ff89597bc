"""From rows to stored items: checked one by one, written in batches, with a checkpoint after each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from dynashard import Collection, Entity
from dynashard.errors import EngineError, InputError
from dynashard.routing import rule_of
from dynashard_serving.tenants import DEFAULT_TENANTS, TenantRule
from tools.failure import CommandError, CommandInterruptedError
from tools.load.checkpoint import Checkpoint, CheckpointFile
from tools.load.rows import Lines, Row

BATCH: Final = 400
"""Sixteen requests of 25 items: as many as go out at once."""
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


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a row: its line, and the fingerprint of the file up to there."""

    line: int = 0
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Batch(Generic[E]):
    """Rows in a row: the items of the good ones, the bad ones, and where they end."""

    good: list[E]
    bad: list[LineError]
    end: Mark
    stop: LineError | None = None
    """The row after them, which ends the load."""


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
        tenants: which texts are tenants.
    """

    items: Collection[E]
    state: CheckpointFile
    checkpoint: Checkpoint
    stop_on_error: bool
    dry_run: bool
    report: Callable[[LineError], None]
    advance: Callable[[Lines, Checkpoint], None]
    tenants: TenantRule = DEFAULT_TENANTS
    _lines_of_keys: dict[int, int] = field(default_factory=dict)
    """By a hash of the key: 64 bits, so that millions of rows fit in memory and none meets another by chance."""

    def run(self, lines: Lines, rows: Iterator[Row]) -> Checkpoint:
        """Load all rows after the checkpoint.

        Returns:
            The checkpoint at the end.

        Raises:
            BadLineError: a row cannot be loaded; everything before it is written, nothing after it.
            CommandError: the file has changed before the checkpoint, or the table refuses.
            CommandInterruptedError: Ctrl-C.

        Cost: 1 write unit for each KB of an item and index it stands in; a round trip for 25 items, 16 at a time. With
        random placement, 1 read unit more for each item and shard.
        """
        try:
            self._run(lines, rows)
        except KeyboardInterrupt:
            # A batch may have been under way.
            raise CommandInterruptedError(f"interrupted; at least {self._so_far()}") from None
        return self.checkpoint

    def _run(self, lines: Lines, rows: Iterator[Row]) -> None:
        for batch in self._batches(lines, rows):
            self._write(batch)
            for error in batch.bad:
                self.report(error)
            self.checkpoint = self.checkpoint.at(
                batch.end.line,
                batch.end.fingerprint,
                written=self.checkpoint.written + len(batch.good),
                refused=self.checkpoint.refused + len(batch.bad),
            )
            if batch.good or batch.bad or self.state.kept:
                # A load that ends at its first line has done nothing to go on from: it is simply started again.
                self._keep()
            self.advance(lines, self.checkpoint)
            if batch.stop is not None:
                self.report(batch.stop)
                raise BadLineError(f"stopped at line {batch.stop.line}; {self._so_far()}")
        if not self.dry_run:
            self.state.remove()

    def _batches(self, lines: Lines, rows: Iterator[Row]) -> Iterator[Batch[E]]:
        good: list[E] = []
        bad: list[LineError] = []
        end = Mark()
        unchanged = False
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
                    good.append(found)
            end = Mark(row.last_line, lines.fingerprint())
            if len(good) + len(bad) >= BATCH:
                yield Batch(good, bad, end)
                good, bad = [], []
        if not unchanged:
            self._require_unchanged(end)
        if good or bad:
            yield Batch(good, bad, end)

    def _require_unchanged(self, end: Mark) -> None:
        """Raise unless the rows up to the checkpoint are what they were: their ids come from their lines."""
        kept = self.checkpoint
        if end != Mark(kept.line, kept.fingerprint):
            raise CommandError(
                f"the file has changed above line {kept.line}, up to where it was loaded; undo that, or remove the "
                "state file to start again (rows without ids become new items then)"
            )

    def _check(self, row: Row) -> E | LineError | None:
        """The item of a row, None for an empty line."""
        if row.fields is None:
            return None if row.reason is None else LineError(row.line, None, row.reason)
        entity = self.items.entity
        fields = self._completed(row.line, row.fields)
        if isinstance(fields, LineError):
            return fields
        try:
            item: E = entity.model.model_validate(fields)
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
        """A row's fields with tenant and ids."""
        fields = dict(given)
        entity, tenant = self.items.entity, self.checkpoint.tenant
        for name in sorted(entity.server_fields & fields.keys()):
            return LineError(line, name, "is stamped when the item is written; leave it out")
        if tenant is not None and fields.setdefault(TENANT, tenant) != tenant:
            return LineError(line, TENANT, "is another than the tenant of this load")
        if TENANT not in fields and TENANT in entity.partition_fields:
            return LineError(line, TENANT, "is missing; give one for all rows with --tenant, or one in each row")
        if isinstance(fields.get(TENANT), str) and not self.tenants.allows(fields[TENANT]):
            return LineError(line, TENANT, f"is no tenant: it must match {self.tenants.pattern}")
        for name in entity.generated_fields - fields.keys():
            fields[name] = self.checkpoint.id_of(line)
        return fields

    def _write(self, batch: Batch[E]) -> None:
        if self.dry_run or not batch.good:
            return
        if self.checkpoint.line == 0:
            # From here on items may be written: their ids must be known to whoever goes on.
            self._keep()
        try:
            self._store(batch.good)
        except EngineError as error:
            raise CommandError(f"{error}; at least {self._so_far()}") from error

    def _store(self, items: list[E]) -> None:
        """Write items, over those that have their keys."""
        new = items
        if not rule_of(self.items.entity).fixed:
            # A key has no home: a batch would draw another shard for what an earlier load has written.
            found = self.items.batch_get(items, consistent=True)
            new = [item for item, stored in zip(items, found, strict=True) if stored is None]
            for item in [item for item, stored in zip(items, found, strict=True) if stored is not None]:
                self.items.put(item)
        self.items.batch_write(put=new)

    def _keep(self) -> None:
        if not self.dry_run:
            self.state.keep(self.checkpoint)

    def _so_far(self) -> str:
        if self.dry_run:
            return "0 items are written"
        done = f"{self.checkpoint.written:,} items are written"
        return f"{done}; --resume goes on from here" if self.state.kept else done


def _line_error(line: int, error: ValidationError) -> LineError:
    first = error.errors(include_url=False, include_input=False)[0]
    reason = _REASONS.get(first["type"]) or first["msg"]
    return LineError(line, ".".join(str(part) for part in first["loc"]) or None, reason)


_REASONS: Final = {"missing": "is missing", "extra_forbidden": "is no field"}
