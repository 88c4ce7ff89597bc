"""Rows of CSV and JSON Lines files, and the reported errors with their lines."""

from decimal import Decimal
from io import BytesIO

import pytest

from dynashard_tools.counting import plural
from dynashard_tools.failure import CommandError
from dynashard_tools.load.rows import MAX_ROW_BYTES, Lines, Row, rows

pytestmark = pytest.mark.unit

COLUMNS = frozenset({"id", "email", "name"})


def csv_rows(text: str | bytes) -> list[Row]:
    return read(text, "csv")


def json_rows(text: str | bytes) -> list[Row]:
    return read(text, "jsonl")


def read(text: str | bytes, file_format: str) -> list[Row]:
    return list(rows(Lines(BytesIO(text.encode() if isinstance(text, str) else text)), file_format, COLUMNS))


def test_a_csv_row_has_its_cells_by_column() -> None:
    found = csv_rows("id,email\n1,a@b\n2,c@d\n")

    assert found == [Row(2, 2, {"id": "1", "email": "a@b"}), Row(3, 3, {"id": "2", "email": "c@d"})]


def test_a_byte_order_mark_is_not_part_of_the_first_column() -> None:
    assert csv_rows(b"\xef\xbb\xbfid\n1\n") == [Row(2, 2, {"id": "1"})]
    assert json_rows(b'\xef\xbb\xbf{"id": "1"}\n') == [Row(1, 1, {"id": "1"})]


def test_windows_line_endings_are_accepted() -> None:
    assert csv_rows("id,email\r\n1,a@b\r\n") == [Row(2, 2, {"id": "1", "email": "a@b"})]
    assert json_rows('{"id": "1"}\r\n') == [Row(1, 1, {"id": "1"})]


def test_the_last_line_needs_no_line_ending() -> None:
    assert csv_rows("id\n1") == [Row(2, 2, {"id": "1"})]
    assert json_rows('{"id": "1"}') == [Row(1, 1, {"id": "1"})]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_quoted_cell_may_hold_line_ends_and_the_lines_after_it_keep_their_numbers(end: str) -> None:
    found = csv_rows(end.join(["id,name", '1,"first', "", 'third"', "2,x", "3"]))

    assert found == [
        Row(2, 4, {"id": "1", "name": f"first{end}{end}third"}),
        Row(5, 5, {"id": "2", "name": "x"}),
        Row(6, 6, None, "1 cell under 2 columns"),
    ]


def test_a_header_may_hold_line_ends_too() -> None:
    with pytest.raises(CommandError, match=r"column 'na\\nme' is not a field"):
        csv_rows('id,"na\nme"\n1,x\n')


def test_quoted_cells_may_hold_commas_and_quotes() -> None:
    assert csv_rows('id,name\n1,"Ada ""the"" Countess, of"\n') == [
        Row(2, 2, {"id": "1", "name": 'Ada "the" Countess, of'})
    ]


def test_an_empty_cell_is_a_missing_value() -> None:
    assert csv_rows('id,email,name\n1,,""\n') == [Row(2, 2, {"id": "1"})]


def test_empty_lines_are_no_rows_and_are_counted() -> None:
    assert csv_rows("id\n\n1\n") == [Row(2, 2, None), Row(3, 3, {"id": "1"})]
    assert json_rows('\n  \n{"id": "1"}\n') == [Row(1, 1, None), Row(2, 2, None), Row(3, 3, {"id": "1"})]


@pytest.mark.parametrize("line", ["1", "1,2,3"])
def test_a_row_with_too_few_or_too_many_cells_is_reported_and_the_next_one_is_read(line: str) -> None:
    found = csv_rows(f"id,email\n{line}\n2,c@d\n")

    count = line.count(",") + 1
    assert found[0] == Row(2, 2, None, f"{plural(count, 'cell')} under 2 columns")
    assert found[1] == Row(3, 3, {"id": "2", "email": "c@d"})


def test_an_unknown_column_is_refused_with_the_known_ones() -> None:
    with pytest.raises(CommandError, match=r"column 'mail' is not a field .* email, id, name"):
        csv_rows("id,mail\n1,a@b\n")


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(CommandError, match="two columns are named 'id'"):
        csv_rows("id,email,id\n1,a@b,2\n")


@pytest.mark.parametrize("text", ["", "\n", "\nid\n1\n"])
def test_a_csv_file_without_a_header_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="must begin with a line that names its columns"):
        csv_rows(text)


def test_a_csv_file_with_nothing_but_a_header_has_no_rows() -> None:
    assert csv_rows("id,email\n") == []


def test_an_empty_json_file_has_no_rows() -> None:
    assert json_rows("") == []


def test_text_after_a_closing_quote_ends_the_reading_at_its_line() -> None:
    found = csv_rows('id,name\n1,x\n2,"a"b\n3,y\n')

    assert found[0] == Row(2, 2, {"id": "1", "name": "x"})
    assert (found[1].line, found[1].final) == (3, True)
    assert "broken CSV" in str(found[1].reason)
    assert len(found) == 2


def test_an_unclosed_quote_is_reported_with_its_line() -> None:
    [first, broken] = csv_rows('id,name\n1,x\n2,"never\nclosed\n')

    assert first == Row(2, 2, {"id": "1", "name": "x"})
    assert (broken.line, broken.last_line, broken.final) == (3, 4, True)


def test_a_line_that_is_not_utf8_is_reported_and_the_next_one_is_read() -> None:
    reason = "not UTF-8; convert the file first"

    assert csv_rows("id,name\n1,Zoë\n".encode("latin-1") + b"2,x\n") == [
        Row(2, 2, None, reason),
        Row(3, 3, {"id": "2", "name": "x"}),
    ]
    assert json_rows('{"id": "Zoë"}\n'.encode("latin-1") + b'{"id": "2"}\n') == [
        Row(1, 1, None, reason),
        Row(2, 2, {"id": "2"}),
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_a_csv_file_in_another_encoding_is_refused_at_its_header(encoding: str) -> None:
    with pytest.raises(CommandError, match="is not a field that can be loaded"):
        csv_rows("id,email\n1,a@b\n".encode(encoding))


def test_only_the_first_line_may_begin_with_a_byte_order_mark() -> None:
    first, second = json_rows(b'\xef\xbb\xbf{"id": "1"}\n\xef\xbb\xbf{"id": "2"}\n')

    assert (first.fields, second.fields) == ({"id": "1"}, None)
    assert "not JSON" in str(second.reason)


@pytest.mark.parametrize("longest", [12, 11])
def test_a_line_may_be_as_long_as_the_longest_with_its_end(longest: int) -> None:
    [row] = rows(Lines(BytesIO(b'{"id": "1"}\n'), longest=longest), "jsonl", COLUMNS)

    assert (row.fields, row.final) == (({"id": "1"}, False) if longest == 12 else (None, True))


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_an_endless_line_ends_the_reading_without_being_kept_in_memory(file_format: str) -> None:
    first = b"id\n1\n" if file_format == "csv" else b'{"id": "1"}\n'
    lines = Lines(BytesIO(first + b"x" * (3 * MAX_ROW_BYTES)))

    *before, last = rows(lines, file_format, COLUMNS)

    assert [row.fields for row in before] == [{"id": "1"}]
    assert (last.line, last.final) == (first.count(b"\n") + 1, True)
    assert "longer than" in str(last.reason)
    assert lines.bytes_read < 2 * MAX_ROW_BYTES


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("nonsense", "not JSON"),
        ('{"id": NaN}', "not JSON"),
        ('{"id": Infinity}', "not JSON"),
        ('{"id": "1"} x', "not JSON"),
        ('{"id": "1"}{"id": "2"}', "not JSON"),
        ("{'id': '1'}", "not JSON"),
        ('{"id": "\\ud800"}', "not JSON"),
        ('{"a": 1, "a": 2}', "not JSON: 'a' occurs twice"),
        ('{"a": NaN}', "not JSON: NaN"),
        ("[" * 5000, "not JSON: nested"),
        ("[1]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('"id"', "not a JSON object"),
    ],
)
def test_a_line_that_is_not_a_json_object_is_reported_and_the_next_one_is_read(line: str, reason: str) -> None:
    [bad, good] = json_rows(f'{line}\n{{"id": "2"}}\n')

    assert (bad.line, bad.fields, bad.final) == (1, None, False)
    assert str(bad.reason).startswith(reason)
    assert good == Row(2, 2, {"id": "2"})


def test_a_json_error_is_reported_with_its_position_in_the_line() -> None:
    [bad] = json_rows('{"id": "ë", x}')

    assert str(bad.reason).endswith("at character 13")


def test_json_values_are_read_unchanged() -> None:
    assert json_rows('{"id": "Zoë \\u00e9 👋", "n": 1.5, "x": null, "in": {"a": [true]}}\n') == [
        Row(1, 1, {"id": "Zoë é 👋", "n": 1.5, "x": None, "in": {"a": [True]}})
    ]


def test_separators_of_other_alphabets_do_not_end_a_line() -> None:
    assert json_rows('{"id": "a\u2028b\u0085c"}\n') == [Row(1, 1, {"id": "a\u2028b\u0085c"})]
    assert csv_rows("id\na\u2028b\x0cc\n") == [Row(2, 2, {"id": "a\u2028b\x0cc"})]


def test_the_fingerprint_depends_on_the_content_that_was_read() -> None:
    short, same, other = (Lines(BytesIO(text)) for text in (b"1\n2\n", b"1\n2\n3\n", b"1\n3\n"))

    for lines in (short, same, other):
        source = iter(lines)
        next(source)
        next(source)

    assert short.fingerprint() == same.fingerprint() != other.fingerprint()


def test_numbers_in_json_keep_every_digit() -> None:
    [row] = read('{"a": 1.10000000000000000000001, "b": 123456789012345678901234567890}', "jsonl")

    assert row.fields == {"a": Decimal("1.10000000000000000000001"), "b": 123456789012345678901234567890}
