"""Edges: both directions are written, removed, listed and counted as one."""

from collections.abc import Iterator
from typing import Any

import pytest

from dynashard import Key, Registry
from dynashard.errors import (
    DeclarationError,
    InvalidCursorError,
    InvalidKeyError,
    InvalidQueryError,
    InvalidValueError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
)
from dynashard.testing.faults import conflict, lost_answer, lost_request, meanwhile, repeated
from dynashard.transport import metered
from dynashard_patterns import COUNT_KEY, EDGE_KEY, Edge, EdgeCount, EdgeRepair, Edges, EdgeStore
from tests.engine.patterns.edge_world import ACTOR, REGISTRY, TENANT, USER, Fan, FanCount, agree, edges_of
from tests.engine.stored_things import World

pytestmark = pytest.mark.engine


@pytest.fixture
def fans(world: World) -> Iterator[EdgeStore[Any]]:
    """The edges. After the test both directions and the counts must agree."""
    yield edges_of(world)
    agree(world)


def listed(fans: EdgeStore[Any], node: str, way: Any = "forward", **asked: Any) -> list[str]:
    return [edge.other for edge in fans.list(TENANT, node, way, **asked).items]


def test_an_edge_is_stored_at_both_nodes(world: World, fans: EdgeStore[Any]) -> None:
    added = fans.add(TENANT, USER, ACTOR, note="since childhood")

    assert added.created
    assert (added.edge.node, added.edge.way, added.edge.other) == (USER, "FAN_OF", ACTOR)
    assert added.edge.since == world.clock.time()
    assert listed(fans, USER) == [ACTOR]
    assert listed(fans, ACTOR, "backward") == [USER]
    assert listed(fans, ACTOR) == listed(fans, USER, "backward") == []
    assert fans.find(TENANT, USER, ACTOR, consistent=True) == added.edge
    assert fans.find(TENANT, ACTOR, USER) is None
    assert {item["note"]["S"] for item in world.raw() if "note" in item} == {"since childhood"}
    assert {item["SK"]["S"] for item in world.raw() if "other" in item} == {"FAN_OF.Actor.5", "FANNED_BY.User.9"}


def test_following_twice_changes_nothing(world: World, fans: EdgeStore[Any]) -> None:
    first = fans.add(TENANT, USER, ACTOR)
    world.clock.at += 60

    again = fans.add(TENANT, USER, ACTOR)

    assert not again.created
    assert again.edge == first.edge
    assert fans.count(TENANT, ACTOR, "backward") == 1


def test_a_removed_edge_is_gone_at_both_nodes(fans: EdgeStore[Any]) -> None:
    fans.add(TENANT, USER, ACTOR)
    fans.add(TENANT, ACTOR, USER)

    fans.remove(TENANT, USER, ACTOR)

    assert listed(fans, USER) == listed(fans, ACTOR, "backward") == []
    assert listed(fans, ACTOR) == [USER]
    with pytest.raises(NotFoundError, match=r"User\.9 .* Actor\.5"):
        fans.remove(TENANT, USER, ACTOR)
    assert fans.add(TENANT, USER, ACTOR).created


def test_an_edge_that_was_added_again_is_not_removed_by_the_revision_of_the_first(fans: EdgeStore[Any]) -> None:
    first = fans.add(TENANT, USER, ACTOR).edge
    fans.remove(TENANT, USER, ACTOR, if_match=first.revision)
    second = fans.add(TENANT, USER, ACTOR).edge

    with pytest.raises(RevisionMismatchError) as refused:
        fans.remove(TENANT, USER, ACTOR, if_match=first.revision)

    assert refused.value.current == second.revision
    assert listed(fans, USER) == [ACTOR]


def test_tenants_have_graphs_of_their_own(fans: EdgeStore[Any]) -> None:
    fans.add(TENANT, USER, ACTOR)

    assert fans.list("other", USER).items == []
    assert fans.count("other", USER) == 0
    with pytest.raises(NotFoundError):
        fans.remove("other", USER, ACTOR)


def test_edges_are_listed_by_type_by_key_and_newest_first(world: World, fans: EdgeStore[Any]) -> None:
    for other in ("Series.2", "Actor.7", "Actor.1", "ActorX.3", "Actor.3"):
        fans.add(TENANT, USER, other)
        world.clock.at += 1

    assert listed(fans, USER) == ["Actor.1", "Actor.3", "Actor.7", "ActorX.3", "Series.2"]
    assert listed(fans, USER, type="Actor") == ["Actor.1", "Actor.3", "Actor.7"]
    assert listed(fans, USER, type="Actor", order="newest") == ["Actor.3", "Actor.1", "Actor.7"]
    assert sorted(listed(fans, USER, type="Actor", order="any")) == ["Actor.1", "Actor.3", "Actor.7"]
    assert sorted(edge.other for edge in fans.scan(TENANT, USER)) == listed(fans, USER)
    assert [fans.count(TENANT, USER, way, consistent=True) for way in ("forward", "backward")] == [5, 0]


@pytest.mark.parametrize("order", ["key", "newest", "any"])
def test_pages_list_every_edge_once(world: World, fans: EdgeStore[Any], order: Any) -> None:
    for number in range(7):
        world.clock.at += 1
        fans.add(TENANT, f"User.{number}", ACTOR)
    found: list[str] = []
    cursor = None
    while True:
        page = fans.list(TENANT, ACTOR, "backward", type="User", order=order, limit=3, cursor=cursor)
        found += [edge.other for edge in page.items]
        cursor = page.cursor
        if cursor is None:
            break

    assert sorted(found) == [f"User.{number}" for number in range(7)]
    with pytest.raises(InvalidCursorError):
        fans.list(TENANT, ACTOR, "forward", type="User", order=order, cursor="nonsense")


def test_an_edge_costs_what_is_documented(fans: EdgeStore[Any]) -> None:
    with metered() as adding:
        fans.add(TENANT, USER, ACTOR)
    with metered() as counting:
        fans.count(TENANT, ACTOR, "backward")
    with metered() as removing:
        fans.remove(TENANT, USER, ACTOR)

    # Two items and two counter slots at the double price of transactions, and two index entries.
    assert (adding.consumed.requests, adding.consumed.write_units) == (1, 10)
    assert (counting.consumed.requests, counting.consumed.read_units) == (1, 2)
    assert (removing.consumed.requests, removing.consumed.write_units) == (1, 10)


@pytest.mark.parametrize("operation", ["add", "remove"])
def test_conflicts_and_repeated_requests_leave_one_edge(world: World, fans: EdgeStore[Any], operation: str) -> None:
    if operation == "remove":
        fans.add(TENANT, USER, ACTOR)
    world.faults(conflict("TransactWriteItems"), repeated("TransactWriteItems", nth=2))

    getattr(edges_of(world), operation)(TENANT, USER, ACTOR)

    assert fans.count(TENANT, USER) == (operation == "add")


@pytest.mark.parametrize("lost", [lost_request, lost_answer])
def test_an_edge_whose_answer_was_lost_is_added_once(world: World, fans: EdgeStore[Any], lost: Any) -> None:
    world.faults(lost("TransactWriteItems"))

    assert edges_of(world).add(TENANT, USER, ACTOR).created

    agree(world)
    assert not fans.add(TENANT, USER, ACTOR).created


@pytest.mark.parametrize("lost", [lost_request, lost_answer])
def test_an_edge_without_any_answer_is_stored_at_both_nodes_or_at_none(
    world: World, fans: EdgeStore[Any], lost: Any
) -> None:
    world.faults(lost("TransactWriteItems"), lost_request("TransactWriteItems", nth=None))

    with pytest.raises(OutcomeUnknownError):
        edges_of(world).add(TENANT, USER, ACTOR)

    agree(world)
    assert fans.add(TENANT, USER, ACTOR).created is (lost is lost_request)


def test_an_edge_removed_during_its_addition_is_added_again(world: World, fans: EdgeStore[Any]) -> None:
    fans.add(TENANT, USER, ACTOR)
    world.faults(meanwhile("BatchGetItem", lambda: fans.remove(TENANT, USER, ACTOR)))

    assert edges_of(world).add(TENANT, USER, ACTOR).created


def test_an_edge_added_during_its_removal_is_removed(world: World, fans: EdgeStore[Any]) -> None:
    world.faults(meanwhile("BatchGetItem", lambda: fans.add(TENANT, USER, ACTOR)))

    edges_of(world).remove(TENANT, USER, ACTOR)

    assert fans.find(TENANT, USER, ACTOR) is None


@pytest.mark.parametrize("lost", ["FAN_OF.Actor.5", "FANNED_BY.User.9"])
@pytest.mark.parametrize("operation", ["add", "remove"])
def test_half_an_edge_is_completed_or_removed(world: World, fans: EdgeStore[Any], lost: str, operation: str) -> None:
    fans.add(TENANT, USER, ACTOR)
    for item in world.raw():
        # One half of the edge, and the slot that counted it.
        if item["SK"]["S"] == lost or ("count" in item and lost.startswith(item["way"]["S"] + ".")):
            world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": item["PK"], "SK": item["SK"]})

    if operation == "add":
        assert not fans.add(TENANT, USER, ACTOR).created
    else:
        fans.remove(TENANT, USER, ACTOR)

    assert fans.count(TENANT, USER) == fans.count(TENANT, ACTOR, "backward") == (operation == "add")


def test_half_an_edge_that_is_completed_during_its_removal_is_removed_whole(world: World, fans: EdgeStore[Any]) -> None:
    fans.add(TENANT, USER, ACTOR)
    for item in world.raw():
        if item["SK"]["S"] == "FANNED_BY.User.9" or ("count" in item and item["way"]["S"] == "FANNED_BY"):
            world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": item["PK"], "SK": item["SK"]})
    world.faults(meanwhile("TransactWriteItems", lambda: fans.add(TENANT, USER, ACTOR), nth=2))

    edges_of(world).remove(TENANT, USER, ACTOR)

    assert fans.find(TENANT, USER, ACTOR) is None
    agree(world)


@pytest.mark.parametrize("lost", ["FAN_OF.Actor.5", "FANNED_BY.User.9"])
def test_an_addition_completes_half_an_edge_as_the_edge_was_added(
    world: World, fans: EdgeStore[Any], lost: str
) -> None:
    since = fans.add(TENANT, USER, ACTOR, note="since childhood").edge.since
    for item in world.raw():
        # One half of the edge, and the slot that counted it.
        if item["SK"]["S"] == lost or ("count" in item and lost.startswith(item["way"]["S"] + ".")):
            world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": item["PK"], "SK": item["SK"]})
    world.clock.at += 60

    added = fans.add(TENANT, USER, ACTOR, note="another")

    [fan] = fans.list(TENANT, ACTOR, "backward").items
    assert [(each.since, each.note) for each in (added.edge, fan)] == [(since, "since childhood")] * 2


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"node": "9"}, InvalidValueError, "node"),
    ({"node": "User."}, InvalidValueError, "node"),
    ({"node": "User.a:b"}, InvalidValueError, "node"),
    ({"node": "U ser.9"}, InvalidValueError, "node"),
    ({"tenant_id": ""}, InvalidKeyError, "tenant_id"),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("wrong", "error", "field"), WRONG)
@pytest.mark.parametrize("operation", ["add", "remove", "find", "list", "count"])
def test_an_invalid_node_is_refused(
    fans: EdgeStore[Any], wrong: dict[str, Any], error: type[Exception], field: str, operation: str
) -> None:
    asked = {"tenant_id": TENANT, "node": USER, **wrong}
    other = [ACTOR] if operation in ("add", "remove", "find") else []

    with pytest.raises(error) as refused:
        getattr(fans, operation)(asked["tenant_id"], asked["node"], *other)

    assert getattr(refused.value, "field", None) == field


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"way": "sideways"}, "way"),
        ({"order": "oldest"}, "order"),
        ({"order": "newest"}, "type"),
        ({"type": "Actor.5"}, "type"),
        ({"type": ""}, "type"),
        ({"limit": 0}, "limit"),
    ],
)
def test_an_impossible_listing_is_refused(fans: EdgeStore[Any], asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidQueryError) as refused:
        fans.list(TENANT, USER, **asked)

    assert refused.value.field == field


def test_fields_that_the_layer_sets_are_refused_from_callers(fans: EdgeStore[Any]) -> None:
    with pytest.raises(InvalidValueError, match="since"):
        fans.add(TENANT, USER, ACTOR, since=0)
    with pytest.raises(InvalidValueError, match="colour"):
        fans.add(TENANT, USER, ACTOR, colour="red")


class Friend(Edge, name="test.v1.Friend", key=EDGE_KEY, registry=REGISTRY):
    """An edge without shards, counts and indexes."""


def test_edges_need_neither_counts_nor_shards_and_may_have_one_direction(world: World) -> None:
    friends = edges_of(world, Edges(Friend, forward="FRIEND", backward="FRIEND"))

    friends.add(TENANT, "User.1", "User.2")

    assert listed(friends, "User.1") == ["User.2"]
    assert listed(friends, "User.2", "backward") == ["User.1"]
    assert not friends.add(TENANT, "User.2", "User.1").created
    with pytest.raises(DeclarationError, match="no counts"):
        friends.count(TENANT, "User.1")
    with pytest.raises(InvalidQueryError, match="index"):
        friends.list(TENANT, "User.1", type="User", order="newest")
    friends.remove(TENANT, "User.2", "User.1")
    assert world.raw() == []


def test_a_node_has_no_edge_to_itself_if_both_ways_have_one_name(world: World, fans: EdgeStore[Any]) -> None:
    friends = edges_of(world, Edges(Friend, forward="FRIEND", backward="FRIEND"))

    with pytest.raises(InvalidValueError, match="itself: both ways are called FRIEND") as refused:
        friends.add(TENANT, USER, USER)
    with pytest.raises(NotFoundError, match="has no edge FRIEND to"):
        friends.remove(TENANT, USER, USER)

    assert refused.value.field == "other"
    assert friends.find(TENANT, USER, USER) is None
    assert fans.add(TENANT, USER, USER).created
    assert (fans.count(TENANT, USER), fans.count(TENANT, USER, "backward")) == (1, 1)


class Pal(Edge, name="test.v1.Pal", key=EDGE_KEY, registry=REGISTRY):
    """An edge of one direction that is counted."""


class PalCount(EdgeCount, name="test.v1.PalCount", key=COUNT_KEY, registry=REGISTRY):
    pass


def test_edges_of_one_direction_are_counted_alike_from_both_ends(world: World) -> None:
    declared = Edges(Pal, forward="PAL", backward="PAL", counts=PalCount, slots=(4, 1))
    pals = edges_of(world, declared)

    for other in ("User.2", "User.3", "User.4"):
        pals.add(TENANT, "User.1", other)

    assert pals.count(TENANT, "User.1") == pals.count(TENANT, "User.1", "backward") == 3
    assert EdgeRepair(world.store, declared, pals).check(TENANT, "User.1").none


def test_wrong_declarations_are_refused() -> None:
    class Odd(Edge, name="test.v1.Odd", key=Key(partition="{tenant_id}", sort="{other}"), registry=Registry()):
        pass

    with pytest.raises(DeclarationError, match="key of edges"):
        Edges(Odd, forward="A", backward="B")
    with pytest.raises(DeclarationError, match=r"A\.B"):
        Edges(Fan, forward="A.B", backward="B")
    with pytest.raises(DeclarationError, match="slots"):
        Edges(Fan, forward="A", backward="B", counts=FanCount, slots=(1, 0))
