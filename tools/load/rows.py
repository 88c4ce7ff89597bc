"""Rows of a file, with the line each begins on."""

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import orjson

from tools.failure import CommandError

MAX_ROW_BYTES: Final = 8 * 1024 * 1024
"""Far above what an item may have; a longer line is not a row but a broken file."""
_BOM: Final = b"\xef\xbb\xbf"
FORMATS: Final = ("csv", "jsonl")


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        line: the line it begins on, counted from 1.
        last_line: the line it ends on: quoted CSV fields may hold line breaks.
        fields: its values by field; None if it cannot be read.
        reason: why it cannot be read.
    """

    line: int
    last_line: int
    fields: dict[str, Any] | None
    reason: str | None = None


@dataclass(slots=True)
class Lines:
    """The lines of a file as text, hashed as they pass.

    Attributes:
        file: the open file.
        number: of the last line handed out.
        bytes_read: so far.
    """

    file: BinaryIO
    number: int = 0
    bytes_read: int = 0
    _hash: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def __iter__(self) -> Iterator[str]:
        """The lines, with their ends.

        Raises:
            CommandError: a line is not UTF-8, or longer than any row.
        """
        while raw := self.file.readline(MAX_ROW_BYTES + 1):
            self.number += 1
            self.bytes_read += len(raw)
            self._hash.update(raw)
            if len(raw) > MAX_ROW_BYTES:
                raise CommandError(f"line {self.number}: longer than {MAX_ROW_BYTES} bytes; is this the right file?")
            try:
                yield (raw.removeprefix(_BOM) if self.number == 1 else raw).decode()
            except UnicodeDecodeError as error:
                raise CommandError(f"line {self.number}: not UTF-8 ({error.reason}); convert the file first") from error

    def fingerprint(self) -> str:
        """Of all lines handed out so far."""
        found: str = self._hash.hexdigest()
        return found


def rows(lines: Lines, file_format: str, columns: frozenset[str]) -> Iterator[Row]:
    """The rows of a file.

    Args:
        lines: its lines.
        file_format: `csv` or `jsonl`.
        columns: the fields there may be.

    Raises:
        CommandError: the file cannot be read on: no header, an unknown column, broken quotes, not UTF-8.
    """
    return _csv_rows(lines, columns) if file_format == "csv" else _json_rows(lines)


def _csv_rows(lines: Lines, columns: frozenset[str]) -> Iterator[Row]:
    csv.field_size_limit(MAX_ROW_BYTES)
    reader = csv.reader(lines, strict=True)
    try:
        header = next(reader, None)
        if not header:
            raise CommandError("the file is empty: a CSV file begins with a line that names its columns")
        _check_header(header, columns)
        begins = lines.number + 1
        for cells in reader:
            yield _csv_row(begins, lines.number, header, cells)
            begins = lines.number + 1
    except csv.Error as error:
        raise CommandError(f"line {lines.number}: broken CSV: {error}") from error


def _check_header(header: list[str], columns: frozenset[str]) -> None:
    for name in header:
        if name not in columns:
            raise CommandError(f"column {name!r} is no field; the fields are {', '.join(sorted(columns))}")
        if header.count(name) > 1:
            raise CommandError(f"two columns are named {name!r}")


def _csv_row(line: int, last_line: int, header: list[str], cells: list[str]) -> Row:
    if not cells:
        return Row(line, last_line, None)
    if len(cells) != len(header):
        return Row(line, last_line, None, f"{len(cells)} cells under {len(header)} columns")
    # CSV has no other way to say that a value is missing.
    return Row(line, last_line, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""})


def _json_rows(lines: Lines) -> Iterator[Row]:
    for text in lines:
        number = lines.number
        if not text.strip():
            yield Row(number, number, None)
            continue
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            yield Row(number, number, None, f"not JSON: {error}")
            continue
        if isinstance(value, dict):
            yield Row(number, number, value)
        else:
            yield Row(number, number, None, "not a JSON object")
