"""Versions of a declaration: a stored item of an earlier one is upgraded when it is read (schema migration on read).

    class User(Entity, name="user.v1.User", ..., version=3, upgrade={1: split_name, 2: add_country}):

A function takes the values of an item of its version, by the names of the stored attributes, and returns those of the
next version. The functions of all versions between run one after the other. The item is stored in the new form by the
next write that changes it, or by `dynashard migrate`. An item without a version is of version 1, so a declaration
without versions costs nothing and its items stay as they are.

What the layer itself stores is not among the values: keys, the revision, the time of expiry, pointers to attachments.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import iscoroutinefunction
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from dynashard.codec import decode_value, encode_value
from dynashard.errors import DynashardError, EngineError, NewerItemError, UndecodableItemError
from dynashard.record import Record, Revision, revision_in, with_revision
from dynashard.schema import PK, SK, SYSTEM_ATTRIBUTES, VERSION

Upgrade = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Makes the values of an item of the next version of those of one. It must be pure: equal values, equal results."""

FIRST: Final = 1
"""The version of items that are stored without one."""
MOST: Final = 1_000_000
_EXAMPLE: Final = "version=2, upgrade={1: split_name}"

R = TypeVar("R", bound=Record)
Wire = Mapping[str, Any]


class _Unique(Protocol):
    """Fields whose values are unique together."""

    @property
    def fields(self) -> Iterable[str]: ...


class Versioned(Protocol):
    """What an upgrade needs to know of a declaration."""

    name: str
    expires: str | None
    key_fields: tuple[str, ...]

    @property
    def unique(self) -> Iterable[_Unique]:
        """Its declarations of unique fields."""
        ...

    @property
    def attachments(self) -> Mapping[str, object]:
        """The fields that are stored out of line."""
        ...

    def left_out(self, name: str, value: Any) -> bool:
        """Whether a value is not stored."""
        ...


class Upgraded(Struct, frozen=True):
    """What a stored item of an earlier version has become.

    Attributes:
        wire: its stored attributes in the present form.
        dropped: the attributes that no longer exist in it.
    """

    wire: dict[str, Any]
    dropped: frozenset[str]


class _UpgradedRevision(Revision):
    """The revision of an item that was read from the form of an earlier version, so all of it must be written."""

    upgraded: Upgraded


class Versions(Struct, frozen=True, eq=False):
    """The version of a declaration, and the functions that upgrade items of earlier ones.

    Attributes:
        number: the version of items that are written.
        upgrades: the functions, by the version that they take.
    """

    number: int = FIRST
    upgrades: Mapping[int, Upgrade] = {}

    @property
    def stored(self) -> dict[str, Any]:
        """The system attribute of items that are written; empty for version 1."""
        return {} if self.number == FIRST else {VERSION: {"N": str(self.number)}}

    def differs(self, wire: Wire) -> bool:
        """Whether a stored item is of another version."""
        return wire.get(VERSION) != (None if self.number == FIRST else {"N": str(self.number)})

    def require_known(self, entity: Versioned, wire: Wire) -> int:
        """Return the version of a stored item; raises `NewerItemError` or, if it is none, `UndecodableItemError`."""
        version = version_in(wire)
        if version is None:
            raise undecodable(entity, wire, f"{VERSION} is {wire[VERSION]}, which is not a version")
        if version > self.number:
            raise NewerItemError(
                f"{entity.name} at {_place(wire)} is stored in version {version}, and this release declares version "
                f"{self.number}: send the request to a release that declares version {version}",
                version=version,
                known=self.number,
            )
        return version

    def readable(self, entity: Versioned, wire: Wire) -> Wire:
        """Return a stored item in the form of this version: itself, or as `upgraded`; raises as that."""
        return self.upgraded(entity, wire).wire if self.differs(wire) else wire

    def upgraded(self, entity: Versioned, wire: Wire) -> Upgraded:
        """Return what a stored item of another version is in this one.

        Raises:
            NewerItemError: it is of a later version.
            UndecodableItemError: no function upgrades its version, or one fails or returns something unusable.
        """
        version = self.require_known(entity, wire)
        kept = {name: each for name, each in wire.items() if name in SYSTEM_ATTRIBUTES or name in entity.attachments}
        values = {name: decode_value(each) for name, each in wire.items() if name not in kept}
        # A reservation of a unique value names it, and only a write that changes the value moves it.
        fixed = {name: "unique" for each in entity.unique for name in each.fields}
        fixed |= dict.fromkeys(entity.key_fields, "part of the key")
        before = {name: values[name] for name in fixed if name in values}
        for number in range(version, self.number):
            if number not in self.upgrades:
                raise undecodable(
                    entity,
                    wire,
                    f"it is of version {version}, and no function upgrades version {number}: run `dynashard migrate` "
                    "with a release that has one",
                )
            values = _step(entity, wire, number, self.upgrades[number], values)
            for name, value in before.items():
                if values.get(name) != value:
                    problem = f"the upgrade of version {number} changes {name}, which is {fixed[name]}"
                    raise undecodable(entity, wire, problem)
        after = {name: _encoded(entity, wire, name, value) for name, value in values.items()}
        present = {**kept, **{name: each for name, each in after.items() if each is not None}, **self.stored}
        return Upgraded(present, frozenset(wire.keys() - present.keys()))


UNVERSIONED: Final = Versions()


def version_in(wire: Wire) -> int | None:
    """Return the version of a stored item; None if what is stored is none."""
    if VERSION not in wire:
        return FIRST
    text = wire[VERSION].get("N")
    return int(text) if type(text) is str and text.isdecimal() and FIRST <= int(text) <= MOST else None


def upgraded_from(revision: object) -> Upgraded | None:
    """Return what an item was read from that has this revision, if it was read from an earlier version."""
    return revision.upgraded if revision.__class__ is _UpgradedRevision else None


def as_upgraded(item: R, upgraded: Upgraded) -> R:
    """Return an item that was read from an upgraded one, with a revision that says so."""
    read = revision_in(upgraded.wire)
    revision = _UpgradedRevision(read)
    revision.upgraded = upgraded
    if isinstance(read, Revision):
        revision.replaced, revision.kept_born = read.replaced, read.kept_born
    return with_revision(item, revision)


def versions_of(version: object, upgrade: object) -> Versions:
    """Return the versions that a declaration names; `version_problems` has found none."""
    number: Any = FIRST if version is None else version
    functions: Any = upgrade or {}
    return Versions(number, dict(functions)) if number != FIRST or functions else UNVERSIONED


def version_problems(version: object, upgrade: object) -> Iterator[str]:
    """Yield the problems of the arguments `version` and `upgrade`, as sentences."""
    if version is not None and (type(version) is not int or not FIRST <= version <= MOST):
        yield f"version is {version!r}; it must be a whole number from 1 on, such as version=2"
        return
    if upgrade is None:
        return
    if not isinstance(upgrade, Mapping) or not all(type(number) is int for number in upgrade):
        yield f"upgrade is {upgrade!r}; it must map versions to functions: {_EXAMPLE}"
        return
    for number, function in upgrade.items():
        if not callable(function):
            yield f"the upgrade of version {number} is {function!r}; it must be a function: {_EXAMPLE}"
        elif iscoroutinefunction(function):
            yield f"the upgrade of version {number} is {function.__name__}, which is awaited: write it without async"
    if upgrade and version is None:
        yield f"has upgrades but no version; write {_EXAMPLE}"
        return
    present: Any = FIRST if version is None else version
    # The first ones may have been removed, once no item is that old.
    needed = range(min(upgrade, default=present), present)
    for number in sorted(set(upgrade) ^ set(needed)):
        if number in needed:
            yield f"upgrades version {min(upgrade)} but not version {number}: add upgrade={{{number}: ...}}"
        else:
            yield f"upgrades version {number}, and its own version is {present}: write version={number + 1}"


def _step(entity: Versioned, wire: Wire, number: int, upgrade: Upgrade, values: dict[str, Any]) -> dict[str, Any]:
    try:
        made = upgrade(values)
    except Exception as error:
        if isinstance(error, EngineError) or (isinstance(error, DynashardError) and error.retryable):
            # It reads the table, and may succeed later.
            raise
        # A function of the domain may raise anything, and the item is as it was.
        raise undecodable(entity, wire, f"the upgrade of version {number} failed: {error!r}") from error
    if not isinstance(made, Mapping) or not all(isinstance(name, str) and name for name in made):
        raise undecodable(
            entity, wire, f"the upgrade of version {number} returned {type(made).__name__}, not a mapping of names"
        )
    refused = SYSTEM_ATTRIBUTES | entity.attachments.keys() | {entity.expires}
    for name in sorted(made.keys() & refused):
        raise undecodable(
            entity, wire, f"the upgrade of version {number} returned {name}, which the layer itself stores"
        )
    return dict(made)


def _encoded(entity: Versioned, wire: Wire, name: str, value: Any) -> dict[str, Any] | None:
    if entity.left_out(name, value):
        return None
    try:
        return encode_value(value, path=name)
    except DynashardError as error:
        raise undecodable(entity, wire, f"an upgrade returned a value that cannot be stored: {error}") from error


def undecodable(entity: Versioned, wire: Mapping[str, Any], problem: str) -> UndecodableItemError:
    """Return the error of a stored item that does not fit, which names its key."""
    return UndecodableItemError(f"{entity.name} at {_place(wire)}: {problem}")


def _place(wire: Mapping[str, Any]) -> str:
    return " / ".join(wire.get(name, {}).get("S", "?") for name in (PK, SK))
