"""The files that exports write: all of it or none, and a bounded part of it in memory."""

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, Final, Literal, Protocol

from pydantic_core import to_json

from dynashard import Entity, definition
from dynashard.entity.checks import plain_types
from tools.failure import CommandError

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: Final[Mapping[str, Format]] = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}
"""By the end of a file's name."""
_GROUP: Final = 20_000
"""Rows of a Parquet file that are written, and held in memory, together."""


class Rows(Protocol):
    """A file that takes items."""

    def add(self, items: Sequence[Entity]) -> None:
        """Take in items."""

    def end(self) -> None:
        """Write what is held back."""

    def close(self) -> None:
        """Take in no more, whether all is written or not."""


@contextmanager
def new_file(path: Path, model: type[Entity], file_format: Format | None = None) -> Iterator[Rows]:
    """A file of an entity's items.

    It is written under another name and takes its own when all is written, so that there is no half of it; what was
    there before is replaced.

    Args:
        path: the file.
        model: the entity.
        file_format: what to write; None for what the file's name says.

    Raises:
        CommandError: the name says no format, or the file cannot be written.
    """
    chosen = file_format or FORMATS.get(path.suffix)
    if chosen is None:
        known = ", ".join(FORMATS)
        raise CommandError(f"{path.name} does not say what it is to be: call it {known}, or give --format")
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as stream:
            rows = _rows(stream, model, chosen)
            try:
                yield rows
                rows.end()
            finally:
                rows.close()
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _rows(stream: BinaryIO, model: type[Entity], file_format: Format) -> Rows:
    match file_format:
        case "csv":
            return Csv(stream, model)
        case "jsonl":
            return JsonLines(stream)
        case "parquet":
            return Parquet(stream, model)


class Csv:
    """A column for each field, in the order of the declaration, under a line that names them.

    A text is its cell, whatever else is nested is JSON, and None is an empty cell. Attachments are left out. The
    dialect is RFC 4180's: its line ends are the only ones with which Python 3.11 quotes every line break in a cell.
    """

    def __init__(self, stream: BinaryIO, model: type[Entity]) -> None:
        attachments = definition(model).attachments
        self._columns = [name for name in model.model_fields if name not in attachments]
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        self._writer = csv.writer(self._text)
        self._writer.writerow(self._columns)

    def add(self, items: Sequence[Entity]) -> None:
        """Take in items."""
        documents = (item.model_dump(mode="json", include=set(self._columns)) for item in items)
        self._writer.writerows([_text(document[name]) for name in self._columns] for document in documents)

    def end(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Leave the stream to whoever opened it."""
        self._text.detach()


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class JsonLines:
    """One JSON object a line, as REST would answer it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def add(self, items: Sequence[Entity]) -> None:
        """Take in items."""
        self._stream.writelines(item.model_dump_json().encode() + b"\n" for item in items)

    def end(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""


class Parquet:
    """A column for each field.

    Texts, whole numbers, floats, booleans, bytes, dates and times (in UTC) stand there as they are, decimals as text,
    and whatever is nested as JSON.
    """

    def __init__(self, stream: BinaryIO, model: type[Entity]) -> None:
        # Takes half a second, and only this format needs it.
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        self._arrow = pa
        self._kinds = {name: _kind(field.annotation) for name, field in model.model_fields.items()}
        types = {
            str: pa.string(),
            bool: pa.bool_(),
            int: pa.int64(),
            float: pa.float64(),
            bytes: pa.binary(),
            datetime: pa.timestamp("us", tz="UTC"),
            date: pa.date32(),
        }
        self._schema = pa.schema([(name, types[kind]) for name, kind in self._kinds.items()])
        self._writer = parquet.ParquetWriter(stream, self._schema, compression="zstd")
        self._held: list[dict[str, Any]] = []

    def add(self, items: Sequence[Entity]) -> None:
        """Take in items."""
        self._held += [self._row(item) for item in items]
        if len(self._held) >= _GROUP:
            self._write()

    def end(self) -> None:
        """Write what is held back."""
        if self._held:
            self._write()

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()

    def _row(self, item: Entity) -> dict[str, Any]:
        told = item.model_dump(mode="json")
        return {name: _cell(kind, getattr(item, name), told[name]) for name, kind in self._kinds.items()}

    def _write(self) -> None:
        try:
            self._writer.write_table(self._arrow.Table.from_pylist(self._held, schema=self._schema))
        except (self._arrow.ArrowInvalid, OverflowError) as error:
            raise CommandError(
                f"a value does not fit its Parquet column ({error}): export to .jsonl instead"
            ) from error
        self._held = []


def _kind(annotation: Any) -> type:
    """The kind of column for a field: one of the keys of the table of types above."""
    kinds = plain_types(annotation) - {NoneType}
    if len(kinds) != 1:
        return str
    [kind] = kinds
    if issubclass(kind, Enum):
        return str
    return next((each for each in (bool, int, float, bytes, datetime, date) if issubclass(kind, each)), str)


def _cell(kind: type, value: Any, told: Any) -> Any:
    if value is None or kind is not str:
        return value
    return told if isinstance(told, str) else to_json(told).decode()
