"""Reads the rows of a file, each with the line on which it begins."""

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, BinaryIO, Final

from dynashard_tools.counting import plural
from dynashard_tools.failure import CommandError

MAX_ROW_BYTES: Final = 8 * 1024 * 1024
"""Far more than an item without attachments may have; a longer line means that the file is broken."""
_BOM: Final = b"\xef\xbb\xbf"
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be half of a surrogate pair."""
_NOT_UTF8: Final = "not UTF-8; convert the file first"


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        line: the line it begins on, counted from 1.
        last_line: the line it ends on, because quoted CSV fields may hold line breaks.
        fields: its values by field; None if it is empty or cannot be read.
        final: whether nothing can be read after it.
    """

    line: int
    last_line: int
    fields: dict[str, Any] | None
    reason: str | None = None
    final: bool = False


class _UnreadableError(Exception):
    """The rest of the file cannot be read. The message is the reason."""


@dataclass(slots=True)
class Lines:
    """The lines of a file as text, hashed as they are read. None may have more than `longest` bytes."""

    file: BinaryIO
    number: int = 0
    bytes_read: int = 0
    longest: int = MAX_ROW_BYTES
    _hash: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def __iter__(self) -> Iterator[str]:
        """Return the lines with their ends. Bytes that are not UTF-8 become lone surrogates."""
        while raw := self.file.readline(self.longest + 1):
            self.number += 1
            self.bytes_read += len(raw)
            self._hash.update(raw)
            if len(raw) > self.longest:
                raise _UnreadableError(
                    f"longer than {self.longest:,} bytes, which no item is; check that this is the right file"
                )
            yield (raw.removeprefix(_BOM) if self.number == 1 else raw).decode(errors="surrogateescape")

    def fingerprint(self) -> str:
        """Return a hash of all lines read so far."""
        found: str = self._hash.hexdigest()
        return found


def rows(lines: Lines, file_format: str, columns: frozenset[str]) -> Iterator[Row]:
    """Return the rows of a file in the format `csv` or `jsonl`, with the fields that may occur.

    Raises:
        CommandError: a CSV file has no header, or a column is unknown or occurs twice.
    """
    return _csv_rows(lines, columns) if file_format == "csv" else _json_rows(lines)


def _csv_rows(lines: Lines, columns: frozenset[str]) -> Iterator[Row]:
    csv.field_size_limit(MAX_ROW_BYTES)
    reader = csv.reader(lines, strict=True)
    begins = 1
    try:
        header = next(reader, None)
        if not header:
            raise CommandError("the file must begin with a line that names its columns")
        _check_header(header, columns)
        begins = lines.number + 1
        for cells in reader:
            yield _csv_row(begins, lines.number, header, cells)
            begins = lines.number + 1
    except csv.Error as error:
        # The next line may or may not be inside a quoted cell: a guess might load nonsense.
        yield Row(begins, lines.number, None, f"broken CSV: {error}", final=True)
    except _UnreadableError as error:
        yield Row(begins, lines.number, None, str(error), final=True)


def _check_header(header: list[str], columns: frozenset[str]) -> None:
    for name in header:
        if name not in columns:
            raise CommandError(
                f"column {name!r} is not a field that can be loaded; those are {', '.join(sorted(columns))}"
            )
        if header.count(name) > 1:
            raise CommandError(f"two columns are named {name!r}")


def _csv_row(line: int, last_line: int, header: list[str], cells: list[str]) -> Row:
    if not cells:
        return Row(line, last_line, None)
    if not all(map(_is_utf8, cells)):
        return Row(line, last_line, None, _NOT_UTF8)
    if len(cells) != len(header):
        return Row(line, last_line, None, f"{plural(len(cells), 'cell')} under {plural(len(header), 'column')}")
    # CSV has no other way to say that a value is missing.
    return Row(line, last_line, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""})


def _json_rows(lines: Lines) -> Iterator[Row]:
    try:
        for text in lines:
            yield _json_row(lines.number, text)
    except _UnreadableError as error:
        yield Row(lines.number, lines.number, None, str(error), final=True)


def _json_row(line: int, text: str) -> Row:
    if not text.strip():
        return Row(line, line, None)
    try:
        return Row(line, line, _json_object(text))
    except json.JSONDecodeError as error:
        # The position is within the line: its own line number would mislead.
        return Row(line, line, None, f"not JSON: {error.msg} at character {error.pos + 1}")
    except RecursionError:
        return Row(line, line, None, "not JSON: nested too deeply")
    except ValueError as error:
        return Row(line, line, None, str(error))


def json_value(text: str) -> Any:
    """Return the value of a JSON text, with fractions as decimals.

    Raises:
        ValueError: it is not JSON, has a repeated name, or an integer of too many digits.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_once)


def _json_object(text: str) -> dict[str, Any]:
    """Parse a line with the standard library, which can keep every digit and report a repeated name."""
    if not _is_utf8(text):
        raise ValueError(_NOT_UTF8)
    value = json_value(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - wrong input, not a wrong call
    if _HALF.search(text) and not _is_utf8(json.dumps(value, ensure_ascii=False, default=str)):
        raise ValueError("not JSON: half a character (a lone surrogate)")
    return value


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(text: str) -> None:
    raise ValueError(f"not JSON: {text} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a repeated name."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"not JSON: {twice!r} occurs twice in one object")
    return members
