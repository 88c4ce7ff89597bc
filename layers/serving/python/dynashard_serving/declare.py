"""What a domain says about how it is served: entities, edges, roll-ups, and reads of its own.

    @serve(path="projects", filters=("owner_id",))
    class Project(Entity, ...): ...

Each is served over REST, described in the OpenAPI document, and answered by direct invocation, from the one
declaration. The command line knows every entity of the domain, served or not.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct, field, structs
from pydantic import BaseModel

from dynashard.entity import Entity, definition
from dynashard.errors import DeclarationError
from dynashard_serving.access import ANYONE, Access, Caller, Claim, check_access
from dynashard_serving.documents import TENANT
from dynashard_serving.exposure import OPERATIONS, READS, TYPE, Exposed, Quota, Window, check_quota

if TYPE_CHECKING:
    from dynashard.service import Dynashard
    from dynashard_patterns.counters import Counter
    from dynashard_patterns.edges import Edges
    from dynashard_patterns.rollups import RollUps
    from dynashard_serving.dependants import Dependant, Dependants
    from dynashard_serving.events import Events
    from dynashard_serving.transitions import Transitions

EDGE_RIGHTS: Final = ("list", "create", "get", "delete")
"""What callers may do with edges; a count needs what a list needs."""
E = TypeVar("E", bound=Entity)
F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "ANYONE",
    "OPERATIONS",
    "READS",
    "Access",
    "Caller",
    "Claim",
    "Dependant",
    "Dependants",
    "Endpoint",
    "Events",
    "Exposed",
    "FamilyListing",
    "ItemRead",
    "Quota",
    "Root",
    "ServedCounter",
    "ServedEdges",
    "ServedRollUps",
    "Transitions",
    "Window",
    "endpoint",
    "endpoint_of",
    "exposure_of",
    "item_read_of",
    "item_reads_of",
    "serve",
    "served_by",
]

OF_COUNTERS: Final = ("get", "add", "take", "delete")
"""What callers can do with counters."""
_EXPOSED: Final[dict[type[Entity], Exposed]] = {}


def serve(
    path: str,
    *,
    filters: tuple[str, ...] = (),
    distinct: tuple[str, ...] = (),
    operations: tuple[str, ...] = OPERATIONS,
    queued: bool = False,
    window: Window | None = None,
    address: tuple[str, ...] = (),
    include: tuple[str, ...] = (),
    transitions: "tuple[Transitions, ...]" = (),
    numbered: str | None = None,
    tag: str | None = None,
    access: Access | None = None,
    quota: Quota | None = None,
) -> Callable[[type[E]], type[E]]:
    """Serve the entity below at a path. `Exposed` describes the arguments, and raises what is wrong with them."""

    def declared(model: type[E]) -> type[E]:
        _EXPOSED[model] = Exposed(
            model,
            path,
            filters=filters,
            distinct=distinct,
            operations=operations,
            queued=queued,
            window=window,
            address=address,
            include=include,
            transitions=transitions,
            numbered=numbered,
            tag=tag,
            access=access,
            quota=quota,
        )
        return model

    return declared


def exposure_of(model: type[Entity]) -> Exposed | None:
    """Return how an entity is served, by the `serve` above its own class; None without one."""
    return _EXPOSED.get(model)


class FamilyListing(Struct, frozen=True):
    """Entities that share their logical partitions, listed as one: each item with its class in `type`.

    The access rules of the entities hold here too: a caller needs the right to list each of them.

        ON_CALL = FamilyListing((Team, Schedule, Shift), path="on-call")

    Attributes:
        entities: the entities.
        path: the REST path of the listing below `/v1`, such as `on-call`.
        tag, quota: as in `Exposed`.

    Raises:
        DeclarationError: the entities cannot be listed as one.
    """

    entities: tuple[type[Entity], ...]
    path: str
    tag: str | None = None
    quota: Quota | None = None

    def __post_init__(self) -> None:
        check_quota(self.quota, f"/{self.path}")
        found = [definition(model) for model in self.entities]
        for one in found:
            if (one.prefix, one.partition.shape()) != (found[0].prefix, found[0].partition.shape()):
                raise DeclarationError(one.name, f"/{self.path} lists entities of different logical partitions as one")
            if TYPE in one.model.model_fields:
                reason = f"/{self.path} needs the name {TYPE} for the entity's name: call its field {TYPE} otherwise"
                raise DeclarationError(one.name, reason)


class ServedCounter(Struct, frozen=True):
    """Counters at a path: read, added to, and taken from.

        SEATS_SERVED = ServedCounter(Seats, path="seats")

    Attributes:
        counter: the class of the counters, whose key has the tenant and the fields of the path.
        path: the REST path below `/v1`.
        operations: what callers may do: some of `get`, `add`, `take` and `delete`.
        tag, quota: as in `Exposed`.
        access: who may do what; None for every caller of the tenant. The owner is a field of the path.

    Raises:
        DeclarationError: the class does not declare a counter, its key has no tenant, or an operation is unknown.
    """

    counter: "type[Counter]"
    path: str
    operations: tuple[str, ...] = ("get", "add", "take")
    tag: str | None = None
    access: Access | None = None
    quota: Quota | None = None

    def __post_init__(self) -> None:
        from dynashard_patterns.counters import bounds_of  # noqa: PLC0415 - a domain without counters needs none of it

        bounds_of(self.counter)
        entity = definition(self.counter)
        if TENANT not in entity.partition_fields:
            raise DeclarationError(entity.name, f"cannot be served as /{self.path}: its key needs {{{TENANT}}}")
        odd = [str(name) for name in self.operations if name not in OF_COUNTERS]
        if odd or not self.operations:
            reason = f"operations are some of {', '.join(OF_COUNTERS)}, not {', '.join(odd) or 'none'}"
            raise DeclarationError(entity.name, f"cannot be served as /{self.path}: {reason}")
        fields = [name for name in entity.partition_fields if name != TENANT]
        check_access(self.access, entity.name, self.operations, fields)
        check_quota(self.quota, entity.name)


class ServedEdges(Struct, frozen=True):
    """Edges at a path: added, removed, looked up, listed from either end and counted.

        FOLLOWS = Edges(Follow, forward="FAN_OF", backward="FANNED_BY", counts=FollowCount)
        FOLLOWS_SERVED = ServedEdges(FOLLOWS, path="follows", verb="follow")

    Attributes:
        edges: the edges, which must be counted.
        path: the REST path below `/v1`.
        verb: what the first node does to the second. The counts are named by it: `following` and `followers`.
        tag, quota: as in `Exposed`.
        access: who may do what; None for every caller of the tenant. Only `{node}` can be the owner: the first node of
            an edge, and the one whose edges are listed or counted, either way.

    Raises:
        DeclarationError: the edges have no counts, or the verb is not a word.
    """

    edges: "Edges[Any]"
    path: str
    verb: str
    tag: str | None = None
    access: Access | None = None
    quota: Quota | None = None

    def __post_init__(self) -> None:
        name = definition(self.edges.model).name
        if self.edges.counts is None:
            raise DeclarationError(name, f"cannot be served as /{self.path}: declare counts, a class of EdgeCount")
        if not self.verb.isascii() or not self.verb.isalpha() or not self.verb.islower():
            reason = f"verb is {self.verb!r}: write one word in lower case, such as follow"
            raise DeclarationError(name, f"cannot be served as /{self.path}: {reason}")
        check_access(self.access, name, EDGE_RIGHTS, ["node"])
        check_quota(self.quota, name)


class ServedRollUps(Struct, frozen=True):
    """Roll-ups at a path: the sums of a group, span by span.

        PLAYS_SERVED = ServedRollUps(PLAYS, path="roll-ups", name="Plays")

    Attributes:
        roll_ups: the roll-ups.
        path: the REST path below `/v1`.
        name: the name of a span in the OpenAPI document.
        summary: what it reads, in a few words.
        text: what it reads, in sentences.
        parameters: what the OpenAPI document says of the level and of the fields of a group, by their names.
        tag, quota: as in `Exposed`.
        access: who may read them; None for every caller of the tenant. The owner is a field of the group.

    Raises:
        DeclarationError: `parameters` names what is not a parameter.
    """

    roll_ups: "RollUps[Any]"
    path: str
    name: str
    summary: str = ""
    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    tag: str | None = None
    access: Access | None = None
    quota: Quota | None = None

    def __post_init__(self) -> None:
        known = {"level"}.union(*(self.roll_ups.by(model) for model in self.roll_ups.into))
        if unknown := sorted(self.parameters.keys() - known):
            reason = f"parameters names {unknown[0]!r}; write some of {', '.join(sorted(known))}"
            raise DeclarationError(f"roll-ups {self.roll_ups.name}", f"cannot be served as /{self.path}: {reason}")
        check_access(self.access, f"roll-ups {self.roll_ups.name}", ["list"], sorted(known - {"level", TENANT}))
        check_quota(self.quota, f"roll-ups {self.roll_ups.name}")


class Endpoint(Struct, frozen=True):
    """A read that a domain computes. A domain writes `endpoint` above a function, which makes one.

    Attributes:
        path: the REST path below `/v1`.
        read: takes the entities, the tenant, and a request.
        request: the model of the request: query parameters over REST, members of a direct invocation.
        answer: the model of the answer, or of each item of it.
        many: whether it answers with a list.
        summary: what it reads, in a few words.
        text: what it reads, in sentences.
        tag: as in `Exposed`.
        access: who may read it; None for every caller of the tenant. The owner is a field of the request.
        of_caller: whether `read` takes the `Caller`, who has a tenant and a subject, instead of the tenant.
        quota: as in `Exposed`.
    """

    path: str
    read: "Callable[[Dynashard, Any, Any], Any]"
    request: type[BaseModel]
    answer: type[BaseModel]
    many: bool
    summary: str
    text: str
    tag: str | None = None
    access: Access | None = None
    of_caller: bool = False
    quota: Quota | None = None


class ItemRead(Struct, frozen=True):
    """A read that a domain computes about an item. A domain writes `endpoint` with `of` above a function, for one.

    Attributes:
        of: the entity of the item.
        path: the last segment of its REST path, after that of the item, such as `on-call`.
        read: takes the entities, the item, and a request.
        request: as of `Endpoint`.
        answer: as of `Endpoint`.
        many: as of `Endpoint`.
        summary: what it reads, in a few words.
        text: what it reads, in sentences.
        access: who may read it, besides the right to `get` the item.
    """

    of: type[Entity]
    path: str
    read: "Callable[[Dynashard, Any, Any], Any]"
    request: type[BaseModel]
    answer: type[BaseModel]
    many: bool
    summary: str
    text: str
    access: Access | None = None


_ENDPOINTS: Final[dict[Callable[..., Any], Endpoint | ItemRead]] = {}


def endpoint(
    path: str,
    *,
    of: type[Entity] | None = None,
    summary: str = "",
    text: str = "",
    tag: str | None = None,
    access: Access | None = None,
    quota: Quota | None = None,
) -> Callable[[F], F]:
    """Serve the function below: over REST by `GET` of the path, in direct invocation as `get`, or as `list` of a list.

        @endpoint(path="revenue")
        def revenue(db: Dynashard, tenant_id: str, wanted: RevenueWanted) -> Revenue: ...

        @endpoint(path="on-call", of=Schedule)
        def on_call(db: Dynashard, schedule: Schedule, wanted: OnCallWanted) -> OnCall: ...

    The request and the answer, or each item of a `list[...]`, are pydantic models. The tenant is the caller's; write
    `caller: Caller` instead of `tenant_id: str` to know who asks. A read
    of an item is served below the item's path, as `/v1/schedules/red/day/on-call`, and is named `schedules/on-call` in
    direct invocation. The item is read first, consistently; without one, the answer is 404.

    Args:
        path: the REST path below `/v1`, or below that of the item.
        of: the entity of the item that it reads about; None if it is of no item.
        summary: what it reads, in a few words; the first line of the docstring if left out.
        text: what it reads, in sentences; the same line if left out.
        tag: as in `Exposed`; reads of an item have that of the entity.
        access: who may read it; the owner is a field of the request. A read about an item needs the right to `get` the
            item too.
        quota: as in `Exposed`. Reads about an item count among the requests of the entity's resource, and have none.

    Raises:
        DeclarationError: the function does not have such parameters and such an answer, or a read about items has a
            quota.
    """

    def declared(function: F) -> F:
        found = structs.replace(_endpoint(function, path, (summary, text), tag, access), quota=quota)
        check_quota(quota, function.__qualname__)
        fields = [name for name in found.request.model_fields if name != TENANT]
        check_access(access, function.__qualname__, ["list" if found.many else "get"], fields)
        _ENDPOINTS[function] = found if of is None else _of_item(function, found, of)
        return function

    return declared


def endpoint_of(function: Callable[..., Any]) -> Endpoint | None:
    """Return how a function is served, by the `endpoint` above it; None without one."""
    found = _ENDPOINTS.get(function)
    return found if isinstance(found, Endpoint) else None


def item_read_of(function: object) -> ItemRead | None:
    """Return how a function is served that reads about an item; None if it is none."""
    found = _ENDPOINTS.get(function) if callable(function) and not isinstance(function, type) else None
    return found if isinstance(found, ItemRead) else None


def item_reads_of(model: type[Entity]) -> list[ItemRead]:
    """Return the reads about items of an entity, as far as the modules that declare them are imported."""
    return [each for each in _ENDPOINTS.values() if isinstance(each, ItemRead) and each.of is model]


def _endpoint(
    function: Callable[..., Any], path: str, texts: tuple[str, str], tag: str | None, access: Access | None
) -> Endpoint:
    summary, text = texts
    hints = get_type_hints(function)
    answer, parameters = hints.pop("return", None), list(hints.values())
    many = get_origin(answer) is list
    model = get_args(answer)[0] if many else answer
    if len(parameters) != len(("db", "tenant_id", "request")) or not _is_model(parameters[-1]) or not _is_model(model):
        raise DeclarationError(
            function.__qualname__,
            f"cannot be served as /{path}: write (db: Dynashard, tenant_id: str, request: A) -> B, or -> list[B], "
            "where A and B are pydantic models",
        )
    first = (function.__doc__ or "").strip().partition("\n")[0]
    if not (summary or first):
        raise DeclarationError(function.__qualname__, f"cannot be served as /{path}: write a docstring, or summary=")
    title, of_caller = summary or first.rstrip("."), parameters[1] is Caller
    return Endpoint(path, function, parameters[-1], model, many, title, text or first, tag, access, of_caller)


def _of_item(function: Callable[..., Any], found: Endpoint, model: type[Entity]) -> ItemRead:
    """Return a read of items of an entity; raises `DeclarationError` if it cannot be served below their paths."""
    path, exposed = found.path, exposure_of(model)
    problem = None
    if exposed is None or "get" not in exposed.operations:
        problem = f"{definition(model).name} is not served with get, so its items have no path: write @serve above it"
    elif not path.replace("-", "").isalnum() or not path.isascii():
        problem = "the path is one segment of ASCII letters, digits and -"
    elif path in {each.path for each in item_reads_of(model)}:
        problem = f"{definition(model).name} has two reads of this path: give each one of its own"
    elif found.quota is not None:
        problem = "the quota is that of the entity: write it at serve"
    elif "key" in {field.alias or name for name, field in found.request.model_fields.items()}:
        problem = "its request has a field called key, which names the item in direct invocation: call it otherwise"
    if problem is not None:
        raise DeclarationError(function.__qualname__, f"cannot be served as {path} of an item: {problem}")
    return ItemRead(
        model, path, found.read, found.request, found.answer, found.many, found.summary, found.text, found.access
    )


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


Root = Exposed | FamilyListing | ServedCounter | ServedEdges | ServedRollUps | Endpoint
"""What is served at a path."""


def served_by(value: object) -> Root | None:
    """Return how something that a module holds is served; None if it is not."""
    if isinstance(value, type):
        return exposure_of(value) if issubclass(value, Entity) else None
    if isinstance(value, Exposed | FamilyListing | ServedCounter | ServedEdges | ServedRollUps | Endpoint):
        return value
    return endpoint_of(value) if callable(value) else None


def __getattr__(name: str) -> object:
    # Only a domain that uses these needs their modules, so that a first GET loads less.
    if name in ("Dependant", "Dependants"):
        from dynashard_serving import dependants  # noqa: PLC0415

        return globals().setdefault(name, getattr(dependants, name))
    if name == "Events":
        from dynashard_serving.events import Events  # noqa: PLC0415

        return globals().setdefault(name, Events)
    if name == "Transitions":
        from dynashard_serving.transitions import Transitions  # noqa: PLC0415

        return globals().setdefault(name, Transitions)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
