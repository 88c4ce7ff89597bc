"""What a release stores besides items is read by the next one, and the other way round."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.releases.archive import unpacked
from tests.releases.golden import kept, under
from tests.releases.stored import read, written
from tests.shared import made_once

pytestmark = pytest.mark.unit

RELEASE = "0.1.0"
NEWER: dict[str, Any] = {"S": "of a newer release"}


def differences(older: Any, newer: Any, place: str = "") -> list[str]:
    """Return where one release has read what another has not; members that only the newer one knows do not count."""
    if isinstance(older, dict) and isinstance(newer, dict):
        return [
            found
            for name, value in older.items()
            for found in differences(value, newer.get(name, "missing"), f"{place}.{name}")
        ]
    if isinstance(older, list) and isinstance(newer, list) and len(older) == len(newer):
        return [found for at, each in enumerate(older) for found in differences(each, newer[at], f"{place}.{at}")]
    return [] if older == newer else [f"{place}: {older!r} is {newer!r}"]


def test_records_of_the_release_before_are_read_as_it_read_them() -> None:
    golden = kept(RELEASE, "stored")

    assert differences(golden["read"], read(golden["stored"])) == []
    assert golden["read"].keys() == written().keys()


def test_the_release_before_reads_the_records_of_this_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    checkout = made_once(tmp_path_factory, f"release-{RELEASE}", lambda folder: unpacked(RELEASE, folder))
    stored = written()

    older = under(checkout / ".venv" / "bin" / "python", "stored.py", given=json.dumps(stored))

    assert [path for path in older["code"] if not Path(path).is_relative_to(checkout)] == []
    assert older["read"].keys() == stored.keys()
    assert differences(older["read"], read(stored)) == []


@pytest.mark.parametrize("kind", ["topology", "progress", "pointers", "manifests", "items"])
def test_members_of_a_newer_release_change_nothing(kind: str) -> None:
    records = written()[kind]

    assert read({kind: {name: extended(kind, record) for name, record in records.items()}}) == read({kind: records})


def extended(kind: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return a stored record as a newer release has it: with a member more, and one more of its change."""
    if kind == "pointers":
        return {"M": {**record["M"], "newer": NEWER}}
    resize = (
        {"change": {"M": {**record["change"]["M"], "newer": NEWER}}}
        if "change" in record and kind == "topology"
        else {}
    )
    return {**record, **resize, "newer": NEWER}


@pytest.mark.parametrize("name", ["create", "put", "update", "delete", "pings"])
def test_members_of_a_newer_release_change_nothing_in_a_message(name: str) -> None:
    body = written()["messages"][name]
    extended = json.dumps({**json.loads(body), "newer": {"of": "a newer release"}})

    assert read({"messages": {name: extended}}) == read({"messages": {name: body}})
