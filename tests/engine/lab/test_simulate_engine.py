"""The simulator's engine answers what the local engine answers, to the requests that the layer really sends."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynashard.errors import DynashardError
from dynashard.schema import PK, SK
from dynashard.transport.interface import Resend, Wire
from dynashard_checks.schedules.schedule import run_seed
from dynashard_checks.schedules.transactions import run_transactions
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY, LeanWire, create_tables, port_of_engine_in_memory, wiped
from dynashard_lab.simulate.engine.engine import Engine
from dynashard_lab.simulate.engine.tables import ITEM_TABLE, TOPOLOGY_TABLE, Database
from dynashard_lab.simulate.wire import World
from tests.depth import examples

pytestmark = pytest.mark.engine

KEY = {"PK": {"S": "e.v1.E:t:0"}, "SK": {"S": "a"}}


class ComparedWire(LeanWire):
    """Sends each request to the local engine and to the simulator's, and compares the answers."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.compared = 0
        self.world = World(Engine(Database(**{TABLE: ITEM_TABLE, TOPOLOGY: TOPOLOGY_TABLE})), {})

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        if operation == "CreateTable" or "Segment" in request:
            # Which items are in a segment of a Scan is not defined.
            return super().call(operation, request)
        theirs: Wire | DynashardError
        ours: Wire | DynashardError
        try:
            theirs = super().call(operation, request, resend=resend)
        except DynashardError as error:
            theirs = error
        try:
            ours = self.world.send(operation, request)
        except DynashardError as error:
            ours = error
        self.compared += 1
        mine, other = _compared(operation, ours), _compared(operation, theirs)
        assert mine == other, f"{operation} {request} is answered by {mine}, not by {other}"
        if isinstance(theirs, DynashardError):
            raise theirs
        return theirs


def _compared(operation: str, answer: Wire | DynashardError) -> Any:
    """What must be equal: all but texts, and the order of a Scan and a BatchGetItem."""
    if isinstance(answer, DynashardError):
        reasons = [(each.code, each.item) for each in getattr(answer, "reasons", ())]
        return type(answer), getattr(answer, "item", None), reasons
    parts = {name: value for name, value in answer.items() if value and name != "ConsumedCapacity"}
    if operation == "UpdateItem" and parts.get("Attributes", {}).keys() == {PK, SK}:
        # The local engine returns the key of an item that was not there; DynamoDB returns nothing.
        del parts["Attributes"]
    if operation == "Scan":
        parts["Items"] = _sorted(parts.get("Items", []))
    if operation == "BatchGetItem":
        parts["Responses"] = {table: _sorted(items) for table, items in parts.get("Responses", {}).items()}
    capacity = answer.get("ConsumedCapacity", ())
    parts["units"] = sum(e["CapacityUnits"] for e in ([capacity] if isinstance(capacity, Mapping) else capacity))
    return parts


def _sorted(items: list[Wire]) -> list[Wire]:
    return sorted(items, key=lambda item: orjson.dumps(item, option=orjson.OPT_SORT_KEYS))


@pytest.fixture(scope="module")
def wire() -> Iterator[ComparedWire]:
    with port_of_engine_in_memory() as port:
        opened = ComparedWire(port)
        create_tables(opened)
        yield opened
        opened.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 30, 15))
def test_answers_are_equal_while_clients_and_movers_change_a_count(wire: ComparedWire, first: int) -> None:
    before = wire.compared

    for seed in range(first, first + 15):
        run_seed(wire, seed)

    assert wire.compared > before + 1_000


def test_answers_are_equal_while_transactions_meet_a_change_of_a_count(wire: ComparedWire) -> None:
    before = wire.compared

    for seed in range(20):
        run_transactions(wire, seed)

    assert wire.compared > before + 1_000


NUMBERS = st.integers(-30, 30).map(str) | st.sampled_from(["0.5", "-2.25", "1E2", "1.50", "9" * 38, "1E-20"])
TEXTS = st.text("abä", max_size=3)
VALUES = st.one_of(
    NUMBERS.map(lambda number: {"N": number}),
    TEXTS.map(lambda text: {"S": text}),
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
    st.sets(TEXTS.filter(bool), min_size=1, max_size=3).map(lambda texts: {"SS": sorted(texts)}),
    st.sets(st.integers(-5, 5), min_size=1, max_size=3).map(lambda numbers: {"NS": sorted(map(str, numbers))}),
    st.lists(TEXTS.map(lambda text: {"S": text}), max_size=2).map(lambda members: {"L": members}),
    st.dictionaries(st.sampled_from("xy"), NUMBERS.map(lambda n: {"N": n}), max_size=2).map(lambda inner: {"M": inner}),
    st.sampled_from(["", "YQ==", "YWI="]).map(lambda text: {"B": text}),
)
NAMES = st.sampled_from(["a", "b", "size", "Rev", "ExpiresAt", "MovedTo"])
ITEMS = st.dictionaries(NAMES, VALUES, max_size=5)


@st.composite
def terms(draw: st.DrawFn, number: int = 0) -> tuple[str, dict[str, str], dict[str, Wire]]:
    """A test of one attribute, as filters and conditions have it."""
    name, slot, kind = f"#f{number}", f":f{number}", draw(st.sampled_from(["compare", "function", "exists"]))
    names, values = {name: draw(NAMES)}, {slot: draw(VALUES)}
    if kind == "compare":
        # The layer compares the order only of types that have one.
        ordered = not {"S", "N", "B"}.isdisjoint(values[slot])
        comparisons = ["=", "<>", "<", "<=", ">", ">="] if ordered else ["=", "<>"]
        return f"{name} {draw(st.sampled_from(comparisons))} {slot}", names, values
    if kind == "exists":
        return f"attribute_{draw(st.sampled_from(['exists', 'not_exists']))}({name})", names, {}
    return f"{draw(st.sampled_from(['begins_with', 'contains']))}({name}, {slot})", names, values


@st.composite
def conditions(draw: st.DrawFn) -> Wire:
    """Two tests, joined as the layer joins them."""
    first, second = draw(terms(0)), draw(terms(1))
    form = draw(st.sampled_from(["{0} AND {1}", "({0}) OR {1}", "{0} AND (NOT {1})", "NOT {0} OR {1} AND {0}"]))
    asking: Wire = {"ConditionExpression": form.format(first[0], second[0])}
    return {**asking, "ExpressionAttributeNames": first[1] | second[1], **_values(first[2] | second[2])}


def _values(values: Mapping[str, Wire]) -> Wire:
    return {"ExpressionAttributeValues": values} if values else {}


@st.composite
def updates(draw: st.DrawFn) -> Wire:
    """An update in the form that the layer sends."""
    changed = draw(st.lists(NAMES, min_size=4, max_size=4, unique=True))
    names = {f"#{number}": name for number, name in enumerate(changed)}
    values = {":0": draw(VALUES), ":1": draw(VALUES), ":3": draw(VALUES)}
    action = draw(st.sampled_from(["ADD", "DELETE"]))
    clauses = ["SET #0 = :0, #1 = if_not_exists(#1, :1)", "REMOVE #2", f"{action} #3 :3"]
    return {
        "UpdateExpression": " ".join(clauses),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


SOME = settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _tried(wire: ComparedWire, operation: str, request: Mapping[str, Any]) -> None:
    """Compare the answers, refusals included."""
    try:
        wire.call(operation, {"TableName": TABLE, **request})
    except DynashardError:
        return


@SOME
@given(item=ITEMS, asking=conditions())
def test_conditions_and_filters_hold_alike(wire: ComparedWire, item: Wire, asking: Wire) -> None:
    _tried(wire, "PutItem", {"Item": {**KEY, **item}})
    text, placeholders = asking["ConditionExpression"], {k: v for k, v in asking.items() if k[0] == "E"}
    query = {**placeholders, "KeyConditionExpression": "PK = :pk", "FilterExpression": text}
    query["ExpressionAttributeValues"] = {":pk": KEY["PK"], **placeholders.get("ExpressionAttributeValues", {})}

    _tried(wire, "Query", query)
    _tried(wire, "DeleteItem", {**asking, "Key": KEY, "ReturnValues": "ALL_OLD"})


@SOME
@given(item=st.none() | ITEMS, update=updates())
def test_updates_change_items_alike(wire: ComparedWire, item: Wire | None, update: Wire) -> None:
    if item is None:
        _tried(wire, "DeleteItem", {"Key": KEY})
    else:
        _tried(wire, "PutItem", {"Item": {**KEY, **item}})

    _tried(wire, "UpdateItem", {**update, "Key": KEY, "ReturnValues": "ALL_NEW"})
    _tried(wire, "GetItem", {"Key": KEY, "ConsistentRead": True})


SORTS = ("a", "ab", "abc", "b", "ba", "ä", "z")


@SOME
@given(
    condition=st.sampled_from(["SK = :a", "SK < :a", "SK <= :a", "SK > :a", "SK >= :a", "begins_with(SK, :a)", ""]),
    sort=st.sampled_from([*SORTS, "aa", "~"]),
    start=st.none() | st.sampled_from(SORTS),
    forward=st.booleans(),
    limit=st.none() | st.integers(1, 8),
)
def test_queries_read_the_same_ranges(
    wire: ComparedWire, *, condition: str, sort: str, start: str | None, forward: bool, limit: int | None
) -> None:
    place = {"S": "e.v1.E:range:0"}
    if wire.world.send("Query", _query(place))["Count"] == 0:
        puts = [{"PutRequest": {"Item": {"PK": place, "SK": {"S": each}}}} for each in SORTS]
        wire.call("BatchWriteItem", {"RequestItems": {TABLE: puts}})
    request = _query(place, condition, sort)
    request |= {"ScanIndexForward": forward} | ({} if limit is None else {"Limit": limit})
    if start is not None:
        request["ExclusiveStartKey"] = {"PK": place, "SK": {"S": start}}

    _tried(wire, "Query", request)


def _query(place: Wire, condition: str = "", sort: str = "") -> Wire:
    values = {":pk": place, ":a": {"S": sort}} if condition else {":pk": place}
    text = f"PK = :pk AND {condition}" if condition else "PK = :pk"
    return {"TableName": TABLE, "KeyConditionExpression": text, "ExpressionAttributeValues": values}


@pytest.mark.parametrize("segments", [1, 3, 16])
def test_the_segments_of_a_scan_hold_each_item_once(wire: ComparedWire, segments: int) -> None:
    wiped(wire, TABLE, ("PK", "SK"))
    keys = [(f"e.v1.E:{tenant}:0", str(number)) for tenant in range(20) for number in range(3)]
    for at in range(0, len(keys), 20):
        puts = [{"PutRequest": {"Item": {"PK": {"S": p}, "SK": {"S": s}}}} for p, s in keys[at : at + 20]]
        wire.call("BatchWriteItem", {"RequestItems": {TABLE: puts}})

    found = []
    for segment in range(segments):
        request: Wire = {"TableName": TABLE, "Segment": segment, "TotalSegments": segments, "Limit": 7}
        answer = wire.world.send("Scan", request)
        while "LastEvaluatedKey" in answer:
            found += answer["Items"]
            answer = wire.world.send("Scan", {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]})
        found += answer["Items"]

    assert sorted((item["PK"]["S"], item["SK"]["S"]) for item in found) == sorted(keys)


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("CreateTable", {"TableName": TABLE}),
        ("PutItem", {"TableName": TABLE, "Item": KEY, "Expected": {}}),
        ("Query", {"TableName": TABLE, "KeyConditionExpression": "PK = :a OR SK = :a"}),
        ("UpdateItem", {"TableName": TABLE, "Key": KEY, "UpdateExpression": "SET a.b = :c"}),
        ("UpdateItem", {"TableName": TABLE, "Key": KEY, "ReturnValues": "UPDATED_NEW"}),
        ("GetItem", {"TableName": "another", "Key": KEY}),
    ],
)
def test_what_it_does_not_know_is_refused(wire: ComparedWire, operation: str, request_: Wire) -> None:
    with pytest.raises(DynashardError):
        wire.world.send(operation, request_)
