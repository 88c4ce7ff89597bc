"""What a release stores besides items is read by the next one, and the other way round."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynashard import schema
from tests.releases.archive import unpacked
from tests.releases.golden import kept, under
from tests.releases.stored import read, unknown, written
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


def test_the_release_before_refuses_or_passes_over_what_only_this_one_stores(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    checkout = made_once(tmp_path_factory, f"release-{RELEASE}", lambda folder: unpacked(RELEASE, folder))
    stored = unknown()

    older = under(checkout / ".venv" / "bin" / "python", "stored.py", given=json.dumps(stored))["read"]
    ours = read(stored)

    refused = {"refused": "undecodable_item"}
    # An item placed by the wrong count would be lost, so the release before must not read the count.
    assert older["topology"]["epochs"] == older["rewritten"]["epochs"] == refused
    assert older["items"]["Article with its text moved"] == refused
    # Without the version it would be read as an item of this one's declaration.
    assert older["items"]["Operation of version 2"]["id"] == "o1"
    assert ours["items"]["Operation of version 2"] == {"refused": "newer_item"}
    for name in ("former_counts", "backfilled"):
        assert older["topology"][name][0]["count"] == ours["topology"][name][0]["count"]
        # If it changes the record, it drops the attribute.
        assert set(ours["rewritten"][name]) - set(older["rewritten"][name]) == {name}
    # It does not know who has sent a write, and judges it by nothing.
    assert older["messages"]["judged"] == ours["messages"]["judged"]


def test_a_rollback_looks_for_each_new_attribute_that_the_release_before_cannot_do_without() -> None:
    known = {name for record in kept(RELEASE, "stored")["stored"]["topology"].values() for name in record}

    # Without what backfills have completed, listings say that they may lack items, which is true until the next build.
    assert schema.TOPOLOGY_ATTRIBUTES - known == {*schema.TOPOLOGY_UNDERSTOOD, schema.TOPOLOGY_BACKFILLED}


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
