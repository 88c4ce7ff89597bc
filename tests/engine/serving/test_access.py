"""Every route and operation against combinations of scopes and owners: over REST, queues, and direct invocation.

`access_table` says what is to be allowed. Routes and operations are those that the functions really have, so one that
is not in the table fails.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import pytest

from dynashard.transport import Transport
from dynashard_serving.api.endpoints import Parts, makers_of
from dynashard_serving.commands.items import Entities
from dynashard_serving.documents import validated
from dynashard_serving.domain import declared
from dynashard_serving.operation_records import OperationState
from dynashard_serving.operations.served import OperationError
from tests.api_caller import ALL_SCOPES, Answer
from tests.engine.api.api_on_engine import idempotency_table, settings_of
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.serving.access_table import (
    HIDDEN,
    OTHER,
    OTHERS,
    OWNER,
    PUBLIC,
    READS,
    RECORDS,
    RECORDS_INVOKED,
    RESOURCES,
    Read,
    Resource,
)
from tests.engine.serving.operations_ways import SERVED, World, _sent, leaves
from tests.engine.writer.queue_world import INTAKE, OPERATIONS, QueueWorld

pytestmark = pytest.mark.engine

TENANT = "abc"
METHODS = {
    "list": ("GET", False),
    "create": ("POST", False),
    "get": ("GET", True),
    "put": ("PUT", True),
    "update": ("PATCH", True),
    "delete": ("DELETE", True),
}
MEANT = {"count": ("list",), "batch_get": ("get",), "batch_write": ("put", "delete")}
REFUSED = {"insufficient_scope", "forbidden", "not_found"}


@pytest.fixture(scope="module")
def world(
    transport: Transport,
    create_table: Callable[[], str],
    dynamodb: RawDynamoDB,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    with idempotency_table(dynamodb) as records:
        queues = QueueWorld(transport, create_table(), Path(tmp_path_factory.mktemp("queues")))
        queues.idempotency = records
        yield World(queues)


def subsets(scopes: Iterable[str]) -> Iterator[tuple[str, ...]]:
    known = list(dict.fromkeys(scopes))
    return chain.from_iterable(combinations(known, number) for number in range(len(known) + 1))


def combinations_of(resource: Resource, right: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield callers: each subset of the scopes that matter, without and with all that do not, of owner and other."""
    mine = [resource.needs[right], resource.needs.get("get", ""), *([resource.every] if resource.every else [])]
    rest = tuple(scope for scope in ALL_SCOPES.split() if scope not in mine)
    for who, some, more in product((OWNER, OTHER), subsets(filter(None, mine)), ((), rest)):
        yield who, (*some, *more)


def may(resource: Resource, right: str, who: str, scopes: tuple[str, ...]) -> bool:
    """Return whether the table allows a right to a caller."""
    if resource.needs.get(right) not in scopes:
        return False
    return right not in resource.limited or who == OWNER or resource.every in scopes


def expected(resource: Resource, right: str, who: str, scopes: tuple[str, ...]) -> str | None:
    """Return the code of a refusal; None for success."""
    if resource.needs[right] not in scopes:
        return "insufficient_scope"
    if may(resource, right, who, scopes):
        return None
    if right == "get" or (right in ("update", "delete") and not may(resource, "get", who, scopes)):
        return "not_found"
    if right == "list" and not resource.refuses:
        return None
    return "forbidden"


def members_of(resource: Resource, right: str) -> Mapping[str, Any]:
    members: dict[str, Any] = {
        "list": {"partition": resource.partition},
        "get": {"key": resource.keys},
        "create": {"item": resource.item},
        "put": {"item": resource.item},
        "update": {"key": resource.keys, "patch": resource.patch},
        "delete": {"key": resource.keys},
    }
    return dict(members[right])


def prepared(world: World, resource: Resource, right: str) -> Any:
    """Store the item, or remove it for a create, and return what is stored."""
    items = world.database.collection(SERVED[resource.path].entity)
    item = validated(SERVED[resource.path].entity, {**resource.item, "tenant_id": TENANT})
    if right == "create":
        items.try_batch_write(delete=[item])
    else:
        items.put(item)
    return world.stored(TENANT, resource.path, {"key": resource.keys})


def rows() -> list[tuple[Resource, str]]:
    return [(resource, right) for resource in RESOURCES for right in resource.needs]


def named(row: tuple[Resource, str]) -> str:
    return f"{row[1]} {row[0].path}"


def judge(
    resource: Resource, right: str, caller: tuple[str, tuple[str, ...]], answered: tuple[str | None, str]
) -> None:
    """Compare the code and the text of an answer with the table."""
    code, content = answered
    wanted = expected(resource, right, *caller)
    assert code == wanted, (resource.path, right, caller, content)
    if right not in ("create", "put") and not may(resource, "get", *caller) and not may(resource, right, *caller):
        assert HIDDEN not in content, (resource.path, right, caller, content)
    if right == "update" and not may(resource, "get", *caller):
        assert HIDDEN not in content, (resource.path, right, caller, content)


def unless_refused(world: World, resource: Resource, code: str | None, before: Any) -> bool:
    """Return whether a write was not refused. A refused one must have left the item as it was, for the next caller."""
    if code is None:
        return True
    assert world.stored(TENANT, resource.path, {"key": resource.keys}) == before
    return False


@pytest.mark.parametrize("row", rows(), ids=named)
def test_rest_allows_what_the_table_allows_and_nothing_else(world: World, row: tuple[Resource, str]) -> None:
    resource, right = row
    before, changed = None, True
    for who, scopes in combinations_of(resource, right):
        if changed:
            before = prepared(world, resource, right)
        caller = world.rest.who(who, *scopes)

        answer = _sent(caller, resource.path, right, members_of(resource, right))

        code = answer.json["code"] if answer.status >= 400 else None
        judge(resource, right, (who, scopes), (code, answer.content.decode()))
        if code == "insufficient_scope":
            challenge = f'Bearer error="insufficient_scope", scope="{resource.needs[right]}"'
            assert answer.headers["www-authenticate"] == challenge
        changed = right not in READS and unless_refused(world, resource, code, before)
        if right == "list" and code is None:
            shown = bool(answer.json["items"])
            assert shown is may(resource, right, who, scopes), (resource.path, who, scopes, answer.json)


@pytest.mark.sampled(4, separator=" ")
@pytest.mark.parametrize("row", rows(), ids=named)
def test_direct_invocation_for_a_caller_allows_the_same(world: World, row: tuple[Resource, str]) -> None:
    resource, right = row
    before, changed = None, True
    for who, scopes in combinations_of(resource, right):
        if changed:
            before = prepared(world, resource, right)

        answer = invoked(world, resource.path, right, members_of(resource, right), (who, scopes))

        code = None if answer["ok"] else answer["error"]["code"]
        judge(resource, right, (who, scopes), (code, json.dumps(answer)))
        changed = right not in READS and unless_refused(world, resource, code, before)


@pytest.mark.sampled(3, separator=" ")
@pytest.mark.parametrize("row", [row for row in rows() if leaves(row[0].path, row[1])], ids=named)
def test_queued_writes_are_refused_when_they_are_sent_or_when_the_stored_item_is_read(
    world: World, row: tuple[Resource, str]
) -> None:
    resource, right = row
    before, changed = None, True
    for who, scopes in combinations_of(resource, right):
        if changed:
            before = prepared(world, resource, right)

        answer = _sent(
            world.queues.caller.who(who, *scopes), resource.path, right, members_of(resource, right), "respond-async"
        )
        code = answer.json["code"] if answer.status >= 400 else done_later(world, answer)

        judge(resource, right, (who, scopes), (code, answer.content.decode()))
        changed = unless_refused(world, resource, code, before)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.path)
def test_counts_and_batches_allow_what_their_parts_need(world: World, resource: Resource) -> None:
    for operation, rights in MEANT.items():
        if not all(right in resource.needs for right in rights):
            continue
        for who, scopes in chain.from_iterable(combinations_of(resource, right) for right in rights):
            prepared(world, resource, "get")
            members = several(resource)[operation]

            answer = invoked(world, resource.path, operation, members, (who, scopes))

            text = json.dumps(answer)
            if not may(resource, rights[0], who, scopes):
                assert HIDDEN not in text, (resource.path, operation, who, scopes, answer)
            if any(resource.needs[right] not in scopes for right in rights):
                assert answer["error"]["code"] == "insufficient_scope", (operation, who, scopes, answer)
            elif operation == "count" and answer["ok"]:
                assert bool(answer["result"]) is may(resource, "list", who, scopes), (who, scopes, answer)
            elif operation == "batch_get":
                assert answer["result"][0]["ok"] is may(resource, "get", who, scopes), (who, scopes, answer)
            elif operation == "batch_write":
                put = answer["result"]["put"][0]
                assert put["ok"] is may(resource, "put", who, scopes), (who, scopes, answer)


def several(resource: Resource) -> Mapping[str, Mapping[str, Any]]:
    """Return the members of a request about several items, by its operation."""
    return {
        "count": {"partition": resource.partition},
        "batch_get": {"keys": [resource.keys]},
        "batch_write": {"put": [resource.item], "delete": [missing(resource)]},
    }


def missing(resource: Resource) -> Mapping[str, Any]:
    """Return the key of an item that does not exist; of audit entries, which no batch deletes, the one that does."""
    last = resource.key[-1]
    return resource.keys if last == "path" else {**resource.keys, last: f"{resource.item[last]}0"}


@pytest.mark.sampled(4, separator=" ")
@pytest.mark.parametrize("row", rows(), ids=named)
def test_each_request_of_a_batch_is_judged_as_if_it_had_been_sent_alone(
    world: World, row: tuple[Resource, str]
) -> None:
    resource, right = row
    if right == "list":
        return
    before, changed = None, True
    for who, scopes in combinations_of(resource, right):
        if changed:
            before = prepared(world, resource, right)
        requests = [{"operation": right, **members_of(resource, right)}]

        over_http = world.rest.who(who, *scopes).post(f"/v1/{resource.path}/batch", {"requests": requests})
        [found] = over_http.json["outcomes"]

        code = None if found["ok"] else found["error"]["code"]
        judge(resource, right, (who, scopes), (code, json.dumps(found)))
        changed = right != "get" and unless_refused(world, resource, code, before)
        if changed:
            prepared(world, resource, right)
        [same] = invoked(world, resource.path, "batch", {"requests": requests}, (who, scopes))["result"]
        assert (same["ok"], same.get("error")) == (found["ok"], found.get("error"))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.path)
def test_counts_over_rest_count_what_a_listing_shows(world: World, resource: Resource) -> None:
    prepared(world, resource, "get")
    for who, scopes in combinations_of(resource, "list"):
        answer = _sent_count(world, resource, who, scopes)

        if resource.needs["list"] not in scopes:
            assert answer.code == "insufficient_scope"
        elif answer.status == 200:
            assert bool(answer.json["count"]) is may(resource, "list", who, scopes), (who, scopes, answer.json)
        else:
            assert answer.code == "forbidden"


def _sent_count(world: World, resource: Resource, who: str, scopes: tuple[str, ...]) -> Answer:
    caller = world.rest.who(who, *scopes)
    return caller.get(f"/v1/{resource.path}/count", query={k: str(v) for k, v in resource.partition.items()})


@pytest.mark.parametrize("read", OTHERS, ids=lambda read: f"{read.method} {read.route}")
def test_edges_roll_ups_families_and_reads_allow_what_the_table_allows(world: World, read: Read) -> None:
    rest = tuple(scope for scope in ALL_SCOPES.split() if scope not in (read.need, read.every))
    mine = [read.need, *([read.every] if read.every else [])]
    for who, some, more in product((OWNER, OTHER), subsets(mine), ((), rest)):
        scopes = (*some, *more)
        invoked(world, "follows", "create", OTHERS[0].members, (OWNER, tuple(ALL_SCOPES.split())))
        for way in (over_rest, over_invocation):
            code = way(world, read, who, scopes)

            if read.need not in scopes:
                assert code == "insufficient_scope", (way, who, scopes)
            elif read.also is not None and read.also[0] not in scopes:
                assert code == read.also[1], (way, who, scopes)
            elif read.every is not None and who != OWNER and read.every not in scopes:
                assert code == "forbidden", (way, who, scopes)
            else:
                assert code in (None, "not_found", "exhausted"), (way, who, scopes)


def over_rest(world: World, read: Read, who: str, scopes: tuple[str, ...]) -> str | None:
    caller, members = world.rest.who(who, *scopes), read.members
    path = read.route.format(**members.get("key", {}))
    flat = {k: v for k, v in members.items() if k not in ("key", "item", "partition")} | dict(
        members.get("partition", {})
    )
    answer = caller.send(read.method, path, members.get("item", {} if read.method == "POST" else None), query=flat)
    return answer.json["code"] if answer.status >= 400 else None


def over_invocation(world: World, read: Read, who: str, scopes: tuple[str, ...]) -> str | None:
    answer = invoked(world, read.name, read.operation, read.members, (who, scopes))
    return None if answer["ok"] else str(answer["error"]["code"])


def invoked(
    world: World, name: str, operation: str, members: Mapping[str, Any], who: tuple[str, tuple[str, ...]]
) -> Any:
    """Send a request that states for whom a service asks."""
    caller = {"subject": who[0], "scopes": list(who[1])}
    event = {"operation": operation, "entity": name, "tenant_id": TENANT, "caller": caller, **members}
    return json.loads(json.dumps(world.commands.answer(event)))


def done_later(world: World, answer: Answer) -> str | None:
    """Return the code with which a queued write has ended; None if it was done."""
    world.queues.drain(INTAKE)
    world.queues.drain(OPERATIONS)
    location = answer.headers.get("location", "")
    if not location.startswith("/v1/operations/"):
        return None
    record = world.queues.operations.get({"tenant_id": TENANT, "id": location.rpartition("/")[2]}, consistent=True)
    assert record.state is not OperationState.PENDING
    return None if record.problem is None else str(record.problem["code"])


def test_every_route_is_in_the_table(world: World) -> None:
    settings = settings_of(world.queues.table, queue_url=INTAKE, operations_queue_url=OPERATIONS)

    def nothing() -> Any:
        return None

    parts = Parts(settings, declared(), world.database, nothing, nothing, nothing, world.queues.clock)
    found = {
        (method, endpoint.template)
        for root, make in makers_of(parts).items()
        if root not in PUBLIC
        for endpoint in make()
        for method in endpoint.handlers
    }

    wanted = {(read.method, read.route) for read in OTHERS}
    for resource in RESOURCES:
        root = f"/v1/{resource.path}"
        one = "/".join([root, *(f"{{{name}}}" for name in SERVED[resource.path].address)])
        wanted |= {(METHODS[right][0], one if METHODS[right][1] else root) for right in resource.needs}
        wanted.add(("GET", f"{root}/count"))
        wanted.add(("POST", f"{root}/batch"))
    wanted |= {(record.method, record.route) for record in RECORDS}
    assert found == wanted, "say in access_table what a new route needs"


def test_every_operation_of_direct_invocation_is_in_the_table(world: World) -> None:
    operations = Entities(world.database, None, world.queues.clock).operations  # type: ignore[arg-type]
    found = set()
    for served in set(world.commands.entities.values()):
        for operation in operations:
            try:
                served.require(operation)
            except OperationError:
                continue
            found.add((served.exposed.path, operation))

    wanted = {(resource.path, right) for resource in RESOURCES for right in resource.needs}
    for operation, rights in MEANT.items():
        wanted |= {(r.path, operation) for r in RESOURCES if all(right in r.needs for right in rights)}
    wanted |= {(resource.path, "batch") for resource in RESOURCES}
    wanted |= {("operations", record.operation) for record in RECORDS_INVOKED}
    assert found == wanted, "say in access_table what a new operation needs"


def test_every_path_of_the_sample_domain_has_rules() -> None:
    assert [each.path for each in declared().declarations.rules if each.access is None] == []
