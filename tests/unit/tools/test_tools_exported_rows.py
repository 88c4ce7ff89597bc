"""Rows of exports: each value is the one that was exported."""

from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError, computed_field

from dynashard import Entity, Key, Registry, created_at, definition
from dynashard_serving.documents import representation, written
from dynashard_tools.export.files import new_file
from dynashard_tools.load.exported import ExportedRows
from dynashard_tools.load.rows import Lines, Row, rows

pytestmark = pytest.mark.unit


class Size(BaseModel, extra="forbid"):
    wide: float
    label: str | None = None


class Part(Entity, name="tools.v1.Part", key=Key("{shop}", "{id}"), registry=Registry()):
    shop: str
    id: str
    made: datetime = created_at()
    day: date
    price: Decimal
    weight: float
    image: bytes
    sold: bool
    number: int | None
    maker: str | None = None
    size: Size
    tags: set[str]
    codes: list[int]
    notes: dict[str, Any]
    text: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def label(self) -> str:
        return f"{self.id} {self.text}"


def part(**fields: Any) -> Part:
    values: dict[str, Any] = {
        "shop": "abc",
        "id": "1",
        "made": datetime(2026, 1, 1, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "price": Decimal("10.10"),
        "weight": 0.1,
        "image": b"\x00\xffabcd",
        "sold": True,
        "number": 2**70,
        "maker": "12",
        "size": Size(wide=1.5),
        "tags": {"b", "a"},
        "codes": [1, 2],
        "notes": {"ratio": 0.1, "whole": 3, "text": "0.1", "none": None},
        "text": "[1]",
    }
    return Part(**values | fields)


def read(content: bytes, form: str) -> list[Part | Row]:
    exported = ExportedRows(definition(Part), cells=form == "csv")
    found = map(exported.row, rows(Lines(BytesIO(content)), form, frozenset(Part.model_fields)))
    return [row if row.fields is None else exported.item(row.fields) for row in found]


def unstamped(item: Part | Row) -> dict[str, Any]:
    assert isinstance(item, Part)
    return item.model_dump(exclude={"made"})


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("fields", [{}, {"number": 0, "sold": False, "tags": set(), "codes": [], "notes": {}}])
def test_every_value_of_an_export_is_read_as_it_was_written(tmp_path: Path, form: str, fields: dict[str, Any]) -> None:
    item = part(**fields)
    path = tmp_path / f"parts.{form}"
    with new_file(path, Part) as add:
        add([item])

    [found] = read(path.read_bytes(), form)

    assert unstamped(found) == unstamped(item)


class Free(Entity, name="tools.v1.Free", key=Key("{shop}", "{id}"), registry=Registry()):
    shop: str
    id: str
    value: Any = None
    either: str | list[int] = ""
    number: int | str | None = None


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize(
    "value",
    ["1.5", 1.5, "7", 7, "true", True, "null", None, '"quoted"', "[1]", [1], "{", "plain", "NaN", "[" * 5000, ""],
)
def test_a_field_of_any_type_is_read_as_it_was_written(tmp_path: Path, form: str, value: Any) -> None:
    item = Free(
        shop="abc",
        id="7",
        value=value,
        either=value if isinstance(value, str | list) else "x",
        number=value if type(value) in (int, str) else None,
    )
    path = tmp_path / f"free.{form}"
    with new_file(path, Free) as add:
        add([item])
    exported = ExportedRows(definition(Free), cells=form == "csv")

    [row] = map(exported.row, rows(Lines(BytesIO(path.read_bytes())), form, frozenset(Free.model_fields)))

    assert row.fields is not None
    found = exported.item(row.fields)
    assert (found.value, type(found.value)) == (value, type(value))
    assert found.either == item.either
    assert (found.number, type(found.number)) == (item.number, type(item.number))
    # A plain field has its text, whatever it looks like.
    assert row.fields["id"] == "7"


def test_a_cell_of_a_file_that_is_no_export_is_a_text() -> None:
    content = b"shop,id,value\r\nabc,7,1.5\r\n"

    [row] = rows(Lines(BytesIO(content)), "csv", frozenset(Free.model_fields))

    assert row.fields is not None
    assert Free.model_validate(row.fields).value == "1.5"


@pytest.mark.parametrize(
    "cell",
    ['{""a"":1,""a"":2}', f'{{""a"":{"[" * 100_000}', f'{{""a"":{"9" * 5000}}}', '{""a"":NaN}', "{"],
    ids=["a repeated name", "nested too deeply", "too many digits", "no number", "cut off"],
)
def test_a_cell_that_no_export_has_written_is_refused_as_a_text(cell: str) -> None:
    columns = "shop,id,day,price,weight,image,sold,number,tags,codes,text,size,notes"
    content = f'{columns}\r\nabc,1,2026-01-02,1,1,AA==,true,1,[],[],x,"{{""wide"":1}}","{cell}"\r\n'

    with pytest.raises(ValidationError, match="1 validation error for Part\nnotes\n  Input should be a"):
        read(content.encode(), "csv")


def test_a_line_of_an_account_has_the_item_and_lines_of_other_entities_are_counted() -> None:
    item = part()
    own = written({"entity": "tools.v1.Part", "item": representation(item, "r1")})
    other = written({"entity": "tools.v1.Other", "item": {"id": "2"}})
    exported = ExportedRows(definition(Part), cells=False)

    found = [exported.row(row) for row in rows(Lines(BytesIO(f"{other}\n{own}".encode())), "jsonl", frozenset())]

    assert found[0].fields is None
    assert found[0].reason is None
    assert found[1].fields is not None
    assert unstamped(exported.item(found[1].fields)) == unstamped(item)
    assert exported.others == 1


def test_an_item_may_have_fields_of_the_names_of_such_a_line() -> None:
    class Both(Entity, name="tools.v1.Both", key=Key("{entity}", "{item}"), registry=Registry()):
        entity: str
        item: str

    exported = ExportedRows(definition(Both), cells=False)

    row = exported.row(Row(1, 1, {"entity": "a", "item": "b"}))

    assert row.fields == {"entity": "a", "item": "b"}
