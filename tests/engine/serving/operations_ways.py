"""The entry points: one request over REST, by direct invocation and through the queues.

Their answers are reduced to a result, or a code with the fields at fault, so that they can be compared. Revisions,
stamps and ids made by the server are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from dynashard import definition
from dynashard.errors import InputError
from dynashard.runtime import Runtime
from dynashard_serving.api.app import build_app
from dynashard_serving.commands.handler import build_commands
from dynashard_serving.documents import TENANT, representation, validated
from dynashard_serving.operation_records import OperationState
from dynashard_serving.operations.served import Served
from tests.api_caller import Answer, Caller
from tests.domain_served import ENTITIES
from tests.engine.api.api_on_engine import TOPOLOGY, settings_of
from tests.engine.writer.queue_world import INTAKE, OPERATIONS, QueueWorld
from tests.roles import as_function

SERVED: Final = {each.path: Served(each) for each in ENTITIES}
WRITES: Final = ("create", "put", "update", "delete")
BESIDE: Final = frozenset({"idempotency_key", "handling", "if_match"})
"""Members that are headers over HTTP."""
_PLACES: Final = ("partition", "sort", "filters", "key")
_VARYING: Final = frozenset({"revision", "created_at", "updated_at"})
_LATER: Final = "respond-async"

Members = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request: its result, or the code of its refusal and the codes of the fields at fault."""

    result: Any = None
    code: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


def problem(document: Mapping[str, Any]) -> Outcome:
    """Return the outcome that the document of an error describes."""
    errors = {_flat(each["field"]): each["code"] for each in document.get("errors", ())}
    return Outcome(code=document["code"], fields=errors)


def _flat(name: str) -> str:
    place, _, rest = name.partition(".")
    return rest if place in _PLACES and rest else name


def plain(result: Any, sent: Mapping[str, Any]) -> Any:
    """Return a result without parts that differ from request to request."""
    if isinstance(result, list):
        return [plain(each, sent) for each in result]
    if not isinstance(result, Mapping):
        return result
    made = {name for name in ("id", "team_id", "method_id", "rule_id") if "item" in sent and name not in sent["item"]}
    kept = {n: plain(v, sent) for n, v in result.items() if n not in _VARYING and n not in made}
    return {**kept, TENANT: "any"} if TENANT in kept else kept


class World:
    """A backend with the data and the time of the test, and its entry points.

    Args:
        queues: its table, its queues and its clock.
    """

    def __init__(self, queues: QueueWorld) -> None:
        self.queues = queues
        self.database = queues.database()
        at_once = settings_of(queues.table, queues.idempotency)
        api, commands = (
            as_function(function, queues.transport, queues.table, TOPOLOGY, queues.idempotency)
            for function in ("api", "commands")
        )
        self.rest = Caller(build_app(at_once, api, runtime=Runtime(queues.clock)))
        self.commands = build_commands(at_once, commands, runtime=Runtime(queues.clock))

    def store(self, tenant: str, items: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Store items of entities without checking their times."""
        for path, item in items:
            model = SERVED[path].entity
            self.database.collection(model).put(validated(model, {**item, TENANT: tenant}))

    def stored(self, tenant: str, path: str, members: Members) -> Any:
        """Return the stored item of a write, or None if it is missing or its key is unknown."""
        resource = SERVED[path]
        known = members.get("key") or members.get("item") or {}
        if any(name not in known for name in resource.key_fields):
            return None
        try:
            key = resource.key({name: known[name] for name in resource.key_fields}, tenant)
            item = self.database.collection(resource.entity).find(key, consistent=True)
        except InputError:
            return None
        return None if item is None else representation(item, item.revision)

    def with_revision(self, tenant: str, path: str, members: Members) -> Members:
        """Return the members with the revision of the stored item in place of `current`."""
        if members.get("if_match") != "current":
            return members
        return {**members, "if_match": self.stored(tenant, path, members)["revision"]}

    def invoke(self, tenant: str, path: str, operation: str, members: Members) -> Outcome:
        """Send a request by direct invocation."""
        event = {"operation": operation, "entity": path, TENANT: tenant, **members}
        answer = self.commands.answer(event)
        if not answer["ok"]:
            return problem(answer["error"])
        result = answer["result"]
        if operation == "batch_get":
            result = [_of_part(each) for each in result]
        if operation == "batch_write":
            result = {kind: [_of_part(each) for each in parts] for kind, parts in result.items()}
        return Outcome(result)

    def ask(self, tenant: str, path: str, operation: str, members: Members) -> Outcome:
        """Send a request over REST, where counts are listings and batches are single requests."""
        caller = self.rest.of(tenant)
        if operation == "count":
            return _counted(caller, path, members)
        if operation == "batch_get":
            keys = members.get("keys", ())
            return Outcome([self.ask(tenant, path, "get", {**members, "key": key, "keys": None}) for key in keys])
        if operation == "batch_write":
            puts = [self.ask(tenant, path, "put", {"item": item}) for item in members.get("put", ())]
            deletes = [self.ask(tenant, path, "delete", {"key": key}) for key in members.get("delete", ())]
            parts = {"put": puts, "delete": deletes}
            return Outcome({kind: [_part_of_single(each) for each in found] for kind, found in parts.items()})
        return _outcome(_sent(caller, path, operation, members), operation)

    def leave(self, tenant: str, path: str, operation: str, members: Members) -> Outcome:
        """Send a write to be done later, wait for it, and return its outcome."""
        answer = _sent(self.queues.caller.of(tenant), path, operation, members, _LATER)
        if answer.status != 202:
            return _outcome(answer, operation)
        self.queues.drain(INTAKE)
        self.queues.drain(OPERATIONS)
        location = answer.headers["location"]
        if not location.startswith("/v1/operations/"):
            return Outcome()
        record = self.queues.operations.get({TENANT: tenant, "id": location.rpartition("/")[2]}, consistent=True)
        assert record.state is not OperationState.PENDING
        return Outcome() if record.problem is None else problem(record.problem)


def leaves(path: str, operation: str) -> bool:
    """Return whether a write can be queued: creates of the entity are queued, or its writes fit into a transaction."""
    entity = definition(SERVED[path].entity) if path in SERVED else None
    if entity is None or operation not in WRITES or operation not in SERVED[path].exposed.operations:
        return False
    return not entity.attachments and (entity.shards is None or entity.shards.placement != "random")


def _of_part(part: Mapping[str, Any]) -> Outcome:
    return Outcome(part["result"]) if part["ok"] else problem(part["error"])


def _part_of_single(outcome: Outcome) -> Outcome:
    """Return the outcome of a single write as a batch has it: no stored item, and deleting a missing item succeeds."""
    return Outcome() if outcome.code in (None, "not_found") else outcome


def _sent(caller: Caller, path: str, operation: str, members: Members, *preferences: str) -> Answer:
    root, headers = f"/v1/{path}", dict(_headers(members, preferences))
    if operation == "create":
        return caller.post(root, members.get("item", {}), headers=headers, query=_query(members, {"item"}))
    if operation == "list":
        return caller.get(root, query=_query(members, set()))
    key = members.get("key") or members.get("item", {})
    address = "/".join([root, *(quote(str(key[name]), safe="") for name in SERVED[path].address)])
    query = _query(members, {"key", "keys", "item", "patch"})
    if operation == "get":
        return caller.get(address, query=query, headers=headers)
    if operation == "put":
        return caller.put(address, members["item"], headers=headers, query=query)
    if operation == "update":
        return caller.patch(address, members["patch"], headers=headers, query=query)
    return caller.delete(address, headers=headers, query=query)


def _headers(members: Members, preferences: Sequence[str]) -> Iterator[tuple[str, str]]:
    if "idempotency_key" in members:
        yield "idempotency-key", members["idempotency_key"]
    if "handling" in members:
        preferences = (*preferences, f"handling={members['handling']}")
    if preferences:
        yield "prefer", ", ".join(preferences)
    if "if_match" in members:
        revision = members["if_match"]
        yield "if-match", revision if revision == "*" else f'"{revision}"'


def _query(members: Members, body: set[str]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in members.items():
        if name in body or name in BESIDE or value is None:
            continue
        if isinstance(value, Mapping):
            for inner, values in value.items():
                pairs += [(inner, _text(each)) for each in (values if isinstance(values, list) else [values])]
        else:
            pairs.append((name, ",".join(value) if isinstance(value, list) else _text(value)))
    return urlencode(pairs)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _outcome(answer: Answer, operation: str) -> Outcome:
    if answer.status >= 400:
        return problem(answer.json)
    if operation == "put":
        return Outcome({"item": answer.json, "created": answer.status == 201})
    return Outcome(answer.json if answer.content else None)


def _counted(caller: Caller, path: str, members: Members) -> Outcome:
    count, cursor = 0, None
    while True:
        answer = _sent(caller, path, "list", {**members, "cursor": cursor})
        if answer.status >= 400:
            return problem(answer.json)
        count, cursor = count + len(answer.json["items"]), answer.json["cursor"]
        if cursor is None:
            return Outcome(count)
