"""Decoding of stream records into changes of items. Moves and other housekeeping are ignored."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard import Entity, Index, Key, Registry, Shards, definition
from dynashard.errors import UndecodableItemError
from dynashard.transport import Wire
from dynashard_patterns import Change
from dynashard_patterns.changes import decode, kind_of, watched

pytestmark = pytest.mark.unit

WRITTEN = 1_800_000_000


class Note(
    Entity,
    name="changes.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_group", "{tenant}:{group}", "{id}")],
    expires="expires_at",
    registry=Registry(),
):
    tenant: str
    id: str
    group: str | None = None
    text: str = ""
    expires_at: datetime | None = None


class Adopted(Entity, name="changes.v1.Adopted", key=Key("{tenant}", "note_{id}"), registry=Registry()):
    tenant: str
    id: str


REGISTRY = watched([Note, Adopted])


def item(text: str = "a", rev: str = "r1", *, shard: int = 1, **system: Any) -> Wire:
    fields = {
        "tenant": {"S": "t"},
        "id": {"S": "n"},
        "text": {"S": text},
        "Rev": {"S": rev},
        "Type": {"S": "changes.v1.Note"},
    }
    return {"PK": {"S": f"changes.v1.Note:t:{shard}"}, "SK": {"S": "n"}, **fields, **system}


def marker(**kept: Any) -> Wire:
    return {"PK": {"S": "changes.v1.Note:t:1"}, "SK": {"S": "n"}, "MovedTo": {"N": "8"}, **kept}


def record(old: Wire | None, new: Wire | None, **more: Any) -> dict[str, Any]:
    images = {name: image for name, image in (("OldImage", old), ("NewImage", new)) if image is not None}
    stream_record = {"SequenceNumber": "7".zfill(21), "ApproximateCreationDateTime": WRITTEN, **images}
    name = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
    return {"eventName": name, "eventSource": "aws:dynamodb", "dynamodb": stream_record, **more}


MOVED: Any = {"MovedFrom": {"N": "4"}}
PAST: Any = {"ExpiresAt": {"N": str(WRITTEN)}}
COMING: Any = {"ExpiresAt": {"N": str(WRITTEN + 1)}}
ENTRY: Any = {"GSI1PK": {"S": "changes.v1.Note:t:g"}, "GSI1SK": {"S": "n"}}
OTHER_ENTRY: Any = {"GSI1PK": {"S": "changes.v1.Note:t:g:3"}, "GSI1SK": {"S": "n"}}
BY_TTL: Any = {"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}

CASES = [
    ("a create", None, item(), {}, "created"),
    ("a create with an expiry", None, item(**COMING), {}, "created"),
    ("the old half of a create while its key moves", None, marker(), {}, None),
    ("the new half of a move", None, item(**MOVED), {}, None),
    ("the old half of a move", item(), marker(**{k: v for k, v in item().items() if k not in {"PK", "SK"}}), {}, None),
    ("a bare marker over an item too large for a full one", item(), marker(), {}, None),
    ("a marker over an expired item", item(**PAST), marker(), {}, None),
    ("a move over an expired item", item(**PAST), item("b", "r2", **MOVED), {}, None),
    ("a moved item over an expired one of an earlier move", item(**PAST, **MOVED), item("b", "r2", **MOVED), {}, None),
    ("a renewed marker", marker(), marker(a={"S": "b"}), {}, None),
    ("a swept marker", marker(), None, {}, None),
    ("a swept marker with a type", marker(Type={"S": "changes.v1.Note"}), None, {}, None),
    ("an item over a marker", marker(), item(), {}, "created"),
    ("a moved item over a marker", marker(), item(**MOVED), {}, None),
    ("an update", item(), item("b", "r2"), {}, "updated"),
    ("a replacement by an equal item", item(), item("a", "r2"), {}, "updated"),
    ("an update of a moved item", item(**MOVED), item("a", "r2"), {}, "updated"),
    ("an update that keeps MovedFrom", item(**MOVED), item("b", "r2", **MOVED), {}, "updated"),
    ("a rewritten index entry", item(**ENTRY), item(**OTHER_ENTRY), {}, None),
    ("a rewritten index entry of a moved item", item(**ENTRY, **MOVED), item(**OTHER_ENTRY, **MOVED), {}, None),
    ("a change by a writer without the layer", item(), item("b"), {}, "updated"),
    ("a later expiry", item(**COMING), item("a", "r2", ExpiresAt={"N": str(WRITTEN + 9)}), {}, "updated"),
    ("a create over an expired item", item(**PAST), item("b", "r2"), {}, "created"),
    ("a delete", item(), None, {}, "deleted"),
    ("a delete of a moved item", item(**MOVED), None, {}, "deleted"),
    ("a delete before the expiry", item(**COMING), None, {}, "deleted"),
    ("a delete by the TTL", item(**PAST), None, BY_TTL, "expired"),
    ("a delete by the TTL, by a clock that is ahead", item(**COMING), None, BY_TTL, "expired"),
    ("an expired item that the mover deletes", item(**PAST), None, {}, "expired"),
]


@pytest.mark.parametrize(("old", "new", "more", "kind"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_record_is_decoded_as_a_change_or_ignored(
    old: Wire | None, new: Wire | None, more: Any, kind: str | None
) -> None:
    change = decode(record(old, new, **more), REGISTRY)

    assert (change.kind if change else None) == kind
    if change is not None:
        assert change.entity is Note
        assert change.key == {"tenant": "t", "id": "n"}
        assert change.sequence == "7".zfill(21)
        assert (change.old is None) == (kind == "created")
        assert (change.new is None) == (kind in {"deleted", "expired"})


def test_a_change_has_both_images_with_their_revisions() -> None:
    change = decode(record(item(), item("b", "r2", **COMING)), REGISTRY)

    assert change is not None
    assert change.old is not None
    assert change.new is not None
    assert (change.old.text, change.old.revision, change.old.expires_at) == ("a", "r1", None)
    assert (change.new.text, change.new.revision) == ("b", "r2")
    assert change.new.expires_at == datetime.fromtimestamp(WRITTEN + 1, UTC)


def test_items_of_unwatched_entities_are_not_decoded() -> None:
    unreadable = {**item(), "Type": {"S": "changes.v1.Unknown"}, "text": {"N": "1"}}

    assert decode(record(None, unreadable), REGISTRY) is None
    assert decode(record(None, item()), watched([])) is None


@pytest.mark.parametrize("expires", [{"S": "2026-11-20"}, {"N": "soon"}, {"NULL": True}], ids=str)
@pytest.mark.parametrize("kind", [{"S": "theirs"}, {"N": "1"}], ids=str)
def test_a_row_of_another_program_is_ignored_whatever_it_has_in_place_of_an_expiry_and_a_type(
    expires: Wire, kind: Wire
) -> None:
    theirs = {"PK": {"S": "CONFIG"}, "SK": {"S": "v1"}, "Type": kind, "ExpiresAt": expires}

    for old, new in ((None, theirs), (theirs, {**theirs, "a": {"S": "b"}}), (theirs, None)):
        assert decode(record(old, new), REGISTRY) is None


def test_an_item_without_a_time_in_place_of_its_expiry_has_not_expired() -> None:
    assert kind_of(record(item(ExpiresAt={"S": "1970"}), None)) == "deleted"


def test_an_item_without_a_type_is_identified_by_its_keys() -> None:
    keys = {"PK": {"S": "changes.v1.Adopted:t"}, "SK": {"S": "note_n"}}
    adopted = {**keys, "tenant": {"S": "t"}, "id": {"S": "n"}}

    change = decode(record(None, adopted), REGISTRY)

    assert change is not None
    assert (change.entity, change.key) == (Adopted, {"tenant": "t", "id": "n"})
    assert decode(record(None, {**adopted, "SK": {"S": "other"}}), REGISTRY) is None


def test_an_item_that_does_not_fit_its_declaration_is_refused() -> None:
    with pytest.raises(UndecodableItemError):
        decode(record(None, {**item(), "text": {"L": []}}), REGISTRY)


def test_a_whole_registry_can_be_watched() -> None:
    registry = Registry()
    registry.add(definition(Note))

    assert isinstance(decode(record(None, item()), registry), Change)


@given(
    history=st.lists(st.sampled_from(["write", "rewrite", "move", "delete"]), max_size=12),
)
def test_moves_and_rewritten_index_entries_do_not_change_the_decoded_changes(history: list[str]) -> None:
    """The same writes give the same changes, with or without moves and rewritten entries between them."""
    assert _decoded([*history]) == _decoded([each for each in history if each in {"write", "delete"}])


def _decoded(history: list[str]) -> list[tuple[str, str | None, str | None]]:
    """Return the decoded changes of an item that is written, moved and deleted by the layer's rules."""
    changed: list[tuple[str, str | None, str | None]] = []
    stored: Wire | None = None
    wrote, shard, entry = 0, 1, 1
    for act in history:
        records = []
        if act == "write":
            wrote += 1
            new = item(str(wrote), f"r{wrote}", shard=shard, GSI1PK={"S": f"g:{entry}"}, GSI1SK={"S": "n"})
            records, stored = [record(stored, new)], new
        elif act == "delete" and stored:
            records, stored = [record(stored, None)], None
        elif act == "rewrite" and stored:
            entry += 1
            new = {**stored, "GSI1PK": {"S": f"g:{entry}"}}
            records, stored = [record(stored, new)], new
        elif act == "move" and stored:
            shard += 1
            copy = {**stored, "PK": {"S": f"changes.v1.Note:t:{shard}"}, **MOVED}
            left = {**stored, "MovedTo": {"N": "8"}}
            records, stored = [record(stored, left), record(None, copy), record(left, None)], copy
        changes = [change for each in records if (change := decode(each, REGISTRY))]
        changed += [(c.kind, c.old and c.old.text, c.new and c.new.text) for c in changes]
    return changed
