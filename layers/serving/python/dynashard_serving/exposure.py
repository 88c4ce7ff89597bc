"""An entity as its domain exposes it by `serve`: its outside name, and what callers may do."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from dynashard.cures import checked
from dynashard.entity import Entity, EntityDefinition, definition, plain_types
from dynashard.errors import DeclarationError
from dynashard_serving.access import Access, check_access
from dynashard_serving.documents import REVISION, TENANT

if TYPE_CHECKING:
    from dynashard_serving.transitions import Transitions

E = TypeVar("E", bound=Entity)
OPERATIONS: Final = ("list", "create", "get", "put", "update", "delete")
"""All that callers may do with an entity: over REST, `GET` and `POST` of the resource, then `GET`, `PUT`, `PATCH` and
`DELETE` of an item."""
TYPE: Final = "type"
"""The name of an item's entity in its document, where several are listed as one."""
READS: Final = ("list", "get")
"""For entities that the backend writes by itself."""
LIST_PARAMETERS: Final = (
    "limit",
    "order",
    "direction",
    "prefix",
    "from",
    "to",
    "cursor",
    "index",
    "fields",
    "consistent",
    "strict",
)
UP_TO: Final = "up_to"
COUNT_PARAMETERS: Final = ("prefix", "from", "to", "index", "consistent", "strict", UP_TO)
"""The parameters of a count. A field may have the name of the last: then a count takes it as its own."""
RESERVED: Final = frozenset({*LIST_PARAMETERS, "distinct", "include"})
"""Names that fields in a query string must not have."""


_UNITS: Final = ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute"))


def _spelled(duration: timedelta) -> str:
    """A duration in the largest unit that it has a whole number of."""
    for unit, name in _UNITS:
        if duration and not duration % unit:
            return f"{duration // unit} {name}{'s' if duration > unit else ''}"
    return f"{duration.total_seconds():g} seconds"


class Window(NamedTuple):
    """How far from now the time of a new item may lie."""

    field: str
    past: timedelta
    ahead: timedelta

    def holds(self, item: Entity, now: datetime) -> bool:
        """Whether the time of an item lies in it, or there is none. One without a zone does, and is refused later."""
        at: datetime | None = getattr(item, self.field)
        if at is None or at.tzinfo is None:
            return True
        return now - self.past <= at <= now + self.ahead

    def __str__(self) -> str:
        """What is asked of a time."""
        return f"The time must be at most {_spelled(self.past)} in the past or {_spelled(self.ahead)} in the future."


class Quota(NamedTuple):
    """How many requests of one tenant a resource takes in a window of time, over REST. A batch counts as its requests.

    Attributes:
        requests: the most requests.
        seconds: the length of a window.
    """

    requests: int
    seconds: int = 60


def check_quota(quota: Quota | None, name: str) -> None:
    """Refuse a quota of what is called `name` if it is declared wrongly. Raises `DeclarationError`."""
    if quota is not None and not (isinstance(quota, Quota) and all(isinstance(n, int) and n >= 1 for n in quota)):
        raise DeclarationError(name, f"its quota is {quota!r}: write whole numbers from 1 on, such as Quota(600, 60)")


class Exposed(Struct, frozen=True):
    """An entity and how it is served. A domain writes `serve` above the class, which makes one.

    Attributes:
        entity: the declared entity.
        path: its REST path below `/v1` and its name on the command line, such as `users`.
        filters: fields by which a listing may be filtered. A filter is applied after reading, so it saves
            answers, not read units; a field that many listings filter by deserves an index. Unique fields by which
            nothing else is listed are added, because an item is looked up by them.
        distinct: fields by which a listing over several logical partitions may leave out what it has shown already,
            such as the original of a copy.
        operations: what callers may do: `OPERATIONS`, or some of them, such as `READS`.
        queued: a create is accepted as soon as it lies on the queue, and done later.
        address: the order of the key fields in an item's path; that of the key if empty. Only the last may hold a `/`.
        quota: how many requests of a tenant are taken; None for as many as come. See docs/quotas.md.
        window: bounds on the time of a new item, checked when it is created or accepted; None for none.
        include: the attachments that a read of one item returns unless it says what it wants by `include` or `fields`.
        transitions: the states of an item and the transitions between them, for each field that holds a state.
        numbered: the field with a number that the server allocates to a new item; None for none.
        tag: the heading of its routes in the OpenAPI document; the path if None.
        access: who may do what; None for every caller of the tenant.
        route: where REST serves an entity that has no operations, such as rows of roll-ups; set by what finds it.

    Raises:
        DeclarationError: a name is not a field of the entity, a part has the wrong type, or callers could not reach
            items; it says what to write.
    """

    entity: type[Entity]
    path: str
    filters: tuple[str, ...] = ()
    distinct: tuple[str, ...] = ()
    operations: tuple[str, ...] = OPERATIONS
    queued: bool = False
    window: Window | None = None
    address: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    transitions: "tuple[Transitions, ...]" = ()
    numbered: str | None = None
    tag: str | None = None
    access: Access | None = None
    route: str | None = None
    quota: Quota | None = None

    def __post_init__(self) -> None:
        known = definition(self.entity)
        self._check_types(known)
        self._check_filters(known)
        force_setattr(self, "filters", tuple(dict.fromkeys((*self.filters, *_looked_up(known)))))
        self._check_distinct(known)
        if odd := [name for name in self._names(known, "operations") if name not in OPERATIONS]:
            self._refuse(known, f"operations are some of {', '.join(OPERATIONS)}, not {', '.join(map(str, odd))}")
        if self._names(known, "address") and set(self.address) - set(known.key_fields):
            self._refuse(known, f"its address must name the fields of its key: {', '.join(known.key_fields)}")
        if unknown := [name for name in self._names(known, "include") if name not in known.attachments]:
            attachments = ", ".join(known.attachments) or "none"
            self._refuse(known, f"include names {unknown[0]!r}, which is not an attachment; there are {attachments}")
        for wrong in self._lifecycle(known):
            self._refuse(known, wrong)
        if self.window is not None and self.window.field not in self.entity.model_fields:
            self._refuse(known, f"its window is of {self.window.field}, which is not a field: write one with a time")
        check_quota(self.quota, known.name)
        if self.operations and (problem := self._unserved(known)):
            self._refuse(known, problem)
        check_access(self.access, known.name, self.operations, _texts_of(known))
        self._check_owner_index(known)

    @property
    def heading(self) -> str:
        """The heading of its routes in the OpenAPI document."""
        return self.tag or self.path

    @property
    def has_lifecycle(self) -> bool:
        """Whether a write depends on the stored item, or the server sets fields of it."""
        return bool(self.transitions) or self.numbered is not None

    @property
    def stamped(self) -> frozenset[str]:
        """The fields that transitions set."""
        return frozenset(name for each in self.transitions for name in each.stamps)

    def _lifecycle(self, known: EntityDefinition[Any]) -> Iterator[str]:
        """Yield what is wrong with transitions and numbers."""
        if not isinstance(self.transitions, tuple) or not all(hasattr(each, "problems") for each in self.transitions):
            yield f"transitions is {self.transitions!r}: write a tuple, such as (Transitions(...),)"
            return
        for each in self.transitions:
            yield from each.problems(known)
        if self.queued and self.has_lifecycle:
            yield "queued creates are stored unseen, so they have neither transitions nor numbers: leave one out"
        if self.numbered is None:
            return
        field = known.model.model_fields.get(self.numbered)
        if field is None or plain_types(field.annotation) != {int} or field.default != 0:
            yield f"numbered names {self.numbered!r}: declare it as `{self.numbered}: int = 0`; 0 has no number yet"
        elif self.numbered in known.key_fields:
            yield f"numbered names {self.numbered}, which is part of the key: use another field"
        elif tuple(known.partition_fields) != (TENANT,):
            yield f"it is numbered, but its partition is not {TENANT} alone: numbers are those of a tenant"

    def _unserved(self, known: EntityDefinition[Any]) -> str | None:
        """Return why callers cannot reach items of the entity; None if they can."""
        fields, key = known.model.model_fields, [name for name in known.key_fields if name != TENANT]
        listed = [index for index in known.indexes.values() if TENANT in index.partition.fields and not index.replica]
        partition = {name for index in listed for name in index.partition.fields}
        if TENANT not in known.partition_fields:
            return f"{TENANT} must be a field of its partition key, or tenants would see each other's items"
        if not key:
            return f"its key has no field besides {TENANT}, so its items have no address"
        if self.address and sorted(self.address) != sorted(key):
            return f"its address must name the fields of its key: {', '.join(key)}"
        if taken := sorted({*self.filters, *known.partition_fields, *partition}.intersection(RESERVED)):
            return f"fields are called like query parameters: {', '.join(taken)}"
        if REVISION in fields:
            return f"a field is called {REVISION}, the name of the ETag's value"
        return None

    def _check_types(self, known: EntityDefinition[Any]) -> None:
        if self.window is not None and not isinstance(self.window, Window):
            example = 'Window("at", past=timedelta(days=1), ahead=timedelta(minutes=5))'
            self._refuse(known, f"window is {self.window!r}: write {example}")
        if not isinstance(self.queued, bool):
            self._refuse(known, f"queued is {self.queued!r}: write queued=True, or leave it out")
        if not isinstance(self.tag, str | None):
            self._refuse(known, f'tag is {self.tag!r}: write a text, such as tag="incidents"')

    def _check_filters(self, known: EntityDefinition[Any]) -> None:
        for name in self._names(known, "filters"):
            if name not in known.model.model_fields:
                fields = ", ".join(known.model.model_fields)
                self._refuse(known, f"filters names {name!r}, which is not a field; write some of {fields}")
            if name in known.attachments:
                self._refuse(
                    known, f"filters names {name}, which is an attachment: listings do not read it; leave it out"
                )

    def _check_distinct(self, known: EntityDefinition[Any]) -> None:
        listed = [known.sort, *(index.sort for index in known.indexes.values() if not index.replica)]
        sorted_by = dict.fromkeys(name for template in listed for name in template.fields)
        for name in self._names(known, "distinct"):
            if name not in sorted_by:
                self._refuse(
                    known,
                    f"distinct names {name!r}, which is in no sort key of the table or an index; write some of "
                    f"{', '.join(sorted_by) or 'none'}",
                )

    def _check_owner_index(self, known: EntityDefinition[Any]) -> None:
        """Refuse an index of the owner rule that does not have the owner's items in the order of the table."""
        if self.access is None or self.access.index is None:
            return
        owner, index = self.access.owner_field, known.indexes.get(self.access.index)
        if index is None or index.replica or set(index.partition.fields) != {TENANT, owner}:
            need = f"an index whose partition is {{{TENANT}}}:{{{owner}}}"
            self._refuse(known, f"access.index is {self.access.index!r}; name {need}, or leave it out")
        if index.sort.text != known.sort.text:
            self._refuse(
                known, f"access.index has the sort key {index.sort.text}; it must be the table's, {known.sort.text}"
            )

    def _names(self, known: EntityDefinition[Any], part: str) -> Sequence[str]:
        names = getattr(self, part)
        if isinstance(names, str) or not isinstance(names, Sequence):
            self._refuse(known, f'{part} is {names!r}: write a tuple of names, such as {part}=("{names}",)')
        return names

    def _refuse(self, known: EntityDefinition[Any], reason: str) -> NoReturn:
        raise DeclarationError(known.name, f"cannot be exposed as /{self.path}: {reason}")


def _looked_up(known: EntityDefinition[Any]) -> Iterator[str]:
    """Yield the unique fields, with those of what they are unique within, that no listing has as fields of its key."""
    listed = {*known.partition_fields, *known.sort.first_fields, TENANT, *RESERVED}
    for index in known.indexes.values():
        if not index.replica:
            listed |= {*index.partition.fields, *index.sort.first_fields}
    yield from (name for unique in known.unique for name in unique.ordered if name not in listed)


def _texts_of(known: EntityDefinition[Any]) -> Sequence[str]:
    """Return the fields that hold text, so that they can name an owner."""
    fields = known.model.model_fields.items()
    return [name for name, each in fields if name not in known.attachments and _holds_text(each.annotation)]


def _holds_text(annotation: Any) -> bool:
    """Return whether a field's type is text, whatever constrains it, or text among others, such as null."""
    return annotation is str or any(map(_holds_text, get_args(annotation)))


_ELSEWHERE: Final = {
    **dict.fromkeys(("auth", "permissions", "roles", "scopes"), "access=Access(...)"),
    **dict.fromkeys(("limit", "rate", "rate_limit", "throttle"), "quota=Quota(...)"),
    **dict.fromkeys(("name", "route", "url"), "path=..."),
}
"""What other frameworks call the arguments of `serve`, and how they are written here."""
_EXPOSED: Final[dict[type[Entity], Exposed]] = {}


def _wrong_serve(problem: str) -> DeclarationError:
    return DeclarationError("serve", problem.removeprefix("serve: "))


@checked("serve", _wrong_serve, instead=_ELSEWHERE)
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
    if not isinstance(path, str):
        named = path.__name__ if isinstance(path, type) else repr(path)
        raise DeclarationError(named, 'serve takes a path: write @serve(path="things") above the class')

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
