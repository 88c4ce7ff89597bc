"""The evidence of stored items about outcomes, compared with the rules of the protocol's model."""

from itertools import product
from typing import Any

import pytest

from dynashard.entity import Revision, revision_in
from dynashard.repository.evidence import Proof, gone, judge, lineage
from dynashard.repository.write import Kind, Write
from dynashard.schema import BORN, PREV, REV

pytestmark = pytest.mark.unit

REVISIONS = ("mine", "awaited", "other", "born", "older")


def item(rev: str, prev: tuple[str, ...] = (), born: str | None = None) -> dict[str, Any]:
    wire: dict[str, Any] = {REV: {"S": rev}}
    wire |= {PREV: {"S": " ".join(prev)}} if prev else {}
    return wire | ({BORN: {"S": born}} if born else {})


def awaited(born: str) -> Revision:
    revision = revision_in(item("awaited", ("older",), born))
    assert isinstance(revision, Revision)
    return revision


FOUND = [
    None,
    *(
        item(rev, prev, born)
        for rev in REVISIONS
        for prev in ((), *((each,) for each in REVISIONS))
        for born in (None, "born", "other")
    ),
]
WRITES = {
    "create": Write(Kind.CREATE, None, "PutItem", 0, {}, revision="mine"),  # type: ignore[arg-type]
    "put": Write(Kind.UPSERT, None, "PutItem", 0, {}, revision="mine"),  # type: ignore[arg-type]
    "update": Write(Kind.ALTER, None, "UpdateItem", 0, revision="mine"),  # type: ignore[arg-type]
    "cas": Write(Kind.ALTER, None, "PutItem", 0, {}, if_match=awaited("born"), revision="mine"),  # type: ignore[arg-type]
    "delete": Write(Kind.ALTER, None, "DeleteItem", 0),  # type: ignore[arg-type]
    "cdel": Write(Kind.ALTER, None, "DeleteItem", 0, if_match=awaited("born")),  # type: ignore[arg-type]
}


def ruled(kind: str, found: dict[str, Any] | None) -> Proof:
    """Return the verdict of the rules of `settle` in `outcome_model.py` about a write without a usable answer."""
    rev = found[REV]["S"] if found else None
    prev = found.get(PREV, {"S": ""})["S"].split() if found else []
    born = (found.get(BORN, {}).get("S") or (None if prev else rev)) if found else None
    if found and kind in ("create", "put", "update", "cas") and (rev == "mine" or "mine" in prev):
        return Proof.DONE
    # The first update of an item without a revision stores its own as the one before.
    replaced = found and kind in ("cas", "cdel") and "awaited" in prev and rev != "awaited"
    replaced = replaced or (found and kind == "cdel" and rev != "awaited" and born == "born")
    return Proof.REFUSED if replaced else Proof.UNKNOWN


@pytest.mark.parametrize("kind", WRITES)
def test_every_small_case_is_judged_as_in_the_model(kind: str) -> None:
    for found in FOUND:
        assert judge(WRITES[kind], found) is ruled(kind, found), found


def test_a_guarded_delete_is_done_if_the_item_is_gone_or_was_created_again() -> None:
    write = WRITES["cdel"]

    for rev, prev, born in product(REVISIONS, ((), ("older",)), (None, "born", "other")):
        known = born or (None if prev else rev)
        assert gone(write, item(rev, prev, born)) is (known is not None and known != "born"), (rev, prev, born)
    assert gone(write, None)


def test_another_birth_proves_nothing_about_an_item_whose_birth_is_unknown() -> None:
    unknown = revision_in(item("awaited", ("older",)))
    write = Write(Kind.ALTER, None, "DeleteItem", 0, if_match=unknown)  # type: ignore[arg-type]

    assert not gone(write, item("other", (), "other"))
    assert judge(write, item("other", ("older",))) is Proof.UNKNOWN


@pytest.mark.parametrize("kind", ["create", "put", "update", "delete"])
def test_an_item_that_was_adopted_and_updated_proves_nothing_about_a_write_that_demands_no_revision(kind: str) -> None:
    assert judge(WRITES[kind], item("other", ("-",))) is Proof.UNKNOWN


def test_a_write_that_demands_an_item_without_revision_is_refused_once_the_item_has_one() -> None:
    write = Write(Kind.ALTER, None, "PutItem", 0, {}, if_match="", revision="mine")  # type: ignore[arg-type]

    assert judge(write, item("other", ("-",))) is Proof.REFUSED
    assert judge(write, item("other", ("older",))) is Proof.UNKNOWN


def test_an_item_without_a_revision_is_gone_only_for_a_delete_that_read_one() -> None:
    adopted = {"text": {"S": "stored before this layer was used"}}

    assert gone(WRITES["cdel"], adopted)
    assert not gone(Write(Kind.ALTER, None, "DeleteItem", 0, if_match=""), adopted)  # type: ignore[arg-type]


def test_a_compare_and_set_keeps_three_predecessors_and_the_birth() -> None:
    revision = revision_in(item("c", ("b", "a", "z"), "z"))

    assert lineage(revision) == {PREV: {"S": "c b a"}, BORN: {"S": "z"}}


def test_an_unknown_revision_leaves_the_birth_unknown() -> None:
    assert lineage("c") == {PREV: {"S": "c"}}
    assert lineage("") == {PREV: {"S": "-"}}
    assert lineage(None) == {}
    unknown = revision_in({**item("d"), **lineage("c")})
    assert isinstance(unknown, Revision)
    assert unknown.born is None
