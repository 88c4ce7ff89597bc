"""Writes the files of exports, with a bounded part of them in memory."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, Final, Literal

from pydantic_core import to_json

from dynashard import Entity, definition
from dynashard.entity.checks import plain_types
from dynashard_tools.cells import cell_of, is_plain
from dynashard_tools.failure import CommandError, needs_extra
from dynashard_tools.files import replacing

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: Final[Mapping[str, Format]] = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}
"""By the end of a file's name."""
_GROUP: Final = 20_000
"""Rows of a Parquet file that are written, and held in memory, together."""
Add = Callable[[Sequence[Entity]], None]
"""Writes items."""


@contextmanager
def new_file(path: Path, model: type[Entity], file_format: Format | None = None) -> Iterator[Add]:
    """Yield a function that writes items; the file replaces what exists when the block has ended without an error.

    Without a format the file's name decides.

    Raises:
        CommandError: the name says no format, the file cannot be written, or what writes its format is not installed.
    """
    chosen = file_format or FORMATS.get(path.suffix)
    if chosen is None:
        known = ", ".join(FORMATS)
        raise CommandError(f"{path.name} does not say its format: end the name in {known}, or give --format")
    with replacing(path) as stream, _WRITERS[chosen](stream, model) as add:
        yield add


def _columns(model: type[Entity]) -> list[str]:
    """Return the fields of an export, without attachments: if they were null, a load of the file would remove them."""
    attachments = definition(model).attachments
    return [name for name in model.model_fields if name not in attachments]


@contextmanager
def _csv(stream: BinaryIO, model: type[Entity]) -> Iterator[Add]:
    """A column for each field, in the order of the declaration, under a line that names them.

    Cells are those of `cell_of`; None is an empty cell. The dialect is RFC 4180's: its line
    ends are the only ones with which Python 3.11 quotes every line break in a cell.
    """
    columns = _columns(model)
    plain = {name for name in columns if is_plain(model.model_fields[name].annotation)}
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(columns)

    def add(items: Sequence[Entity]) -> None:
        documents = (item.model_dump(mode="json", include=set(columns)) for item in items)
        writer.writerows([cell_of(document[name], plain=name in plain) for name in columns] for document in documents)

    try:
        yield add
    finally:
        # Leaves the stream open.
        text.detach()


@contextmanager
def _json_lines(stream: BinaryIO, model: type[Entity]) -> Iterator[Add]:
    """One JSON object a line, as REST would answer it."""
    columns = set(_columns(model))
    yield lambda items: stream.writelines(item.model_dump_json(include=columns).encode() + b"\n" for item in items)


@contextmanager
def _parquet(stream: BinaryIO, model: type[Entity]) -> Iterator[Add]:
    """A column for each field.

    Texts, integers, floats, booleans, bytes, dates and times (in UTC) have their Parquet types, decimals are texts, and
    nested values are JSON.
    """
    with needs_extra("parquet"):
        # Takes half a second, and only this format needs it.
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

    types = {
        str: pa.string(),
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        bytes: pa.binary(),
        datetime: pa.timestamp("us", tz="UTC"),
        date: pa.date32(),
    }
    kinds = {name: _kind(model.model_fields[name].annotation) for name in _columns(model)}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()])
    held: list[dict[str, Any]] = []

    def write() -> None:
        try:
            writer.write_table(pa.Table.from_pylist(held, schema=schema))
        except (pa.ArrowInvalid, OverflowError) as error:
            raise CommandError(
                f"a value does not fit its Parquet column ({error}): export to .jsonl instead"
            ) from error
        held.clear()

    def add(items: Sequence[Entity]) -> None:
        for item in items:
            document = item.model_dump(mode="json")
            held.append({name: _cell(kind, getattr(item, name), document[name]) for name, kind in kinds.items()})
        if len(held) >= _GROUP:
            write()

    with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        yield add
        if held:
            write()


_WRITERS: Final[Mapping[Format, Callable[[BinaryIO, type[Entity]], AbstractContextManager[Add]]]] = {
    "csv": _csv,
    "jsonl": _json_lines,
    "parquet": _parquet,
}


def _kind(annotation: Any) -> type:
    """Return the type of a field's column: one of the keys of the table of types above."""
    kinds = plain_types(annotation) - {NoneType}
    if len(kinds) != 1:
        return str
    [kind] = kinds
    if issubclass(kind, Enum):
        return str
    return next((each for each in (bool, int, float, bytes, datetime, date) if issubclass(kind, each)), str)


def _cell(kind: type, value: Any, as_json: Any) -> Any:
    if value is None or kind is not str:
        return value
    return as_json if isinstance(as_json, str) else to_json(as_json).decode()
