"""What a domain says about how it is served: entities, edges, roll-ups, and reads of its own.

    @serve(path="projects", filters=("owner_id",))
    class Project(Entity, ...): ...

Each is served over REST, described in the OpenAPI document, and answered by direct invocation, from the one
declaration. The command line knows every entity of the domain, served or not.
"""

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from dynashard.entity import Entity, definition
from dynashard.errors import DeclarationError
from dynashard_serving.access import ANYONE, Access, Caller, Claim, check_access
from dynashard_serving.computed_reads import (
    Endpoint,
    ItemRead,
    endpoint,
    endpoint_of,
    item_read_of,
    item_reads_of,
)
from dynashard_serving.documents import TENANT
from dynashard_serving.exposure import (
    OPERATIONS,
    READS,
    TYPE,
    Exposed,
    Quota,
    Window,
    check_quota,
    exposure_of,
    serve,
)

if TYPE_CHECKING:
    from dynashard_patterns.counters import Counter
    from dynashard_patterns.edges import Edges
    from dynashard_patterns.rollups import RollUps
    from dynashard_serving.dependants import Dependant, Dependants
    from dynashard_serving.events import Events
    from dynashard_serving.transitions import Transitions

EDGE_RIGHTS: Final = ("list", "create", "get", "delete")
"""What callers may do with edges; a count needs what a list needs."""

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
