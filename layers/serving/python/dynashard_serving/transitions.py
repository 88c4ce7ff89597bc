"""States of items and the transitions between them, as a domain declares them.

    @serve(path="incidents", transitions=(
        Transitions("state", {"OPEN": ("CLOSED",), "CLOSED": ("OPEN",)}, stamps={"closed_at": ("CLOSED",)}),
    ))
    class Incident(Entity, ...): ...

They are checked where operations are decided, for REST, direct invocation and the queue alike. A write replaces the
item that it was checked against, or is tried again, so no other writer comes between the check and the write.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar

import msgspec
from pydantic.fields import FieldInfo

from dynashard.entity import Entity, EntityDefinition
from dynashard.entity.checks import plain_types
from dynashard.errors import DynashardError, FieldError, ValidationFailedError


class TransitionRefusedError(DynashardError):
    """The item is in a state from which the requested one cannot be reached; `allowed` names those that can."""

    code = "transition_refused"
    status = 409
    in_details: ClassVar[tuple[str, ...]] = ("field", "state", "requested", "allowed")

    def __init__(self, field: str, state: str, requested: str, allowed: tuple[str, ...]) -> None:
        choice = " or ".join(allowed) or "no other state"
        super().__init__(f"{field} is {state}, from which {requested} cannot be reached; {choice} can.")
        self.field = field
        self.state = state
        self.requested = requested
        self.allowed = list(allowed)


class Transitions(msgspec.Struct, frozen=True):
    """The states of an item, in one of its fields.

    A state that is not named here, which an earlier declaration may have stored, can be left for any state. A write
    that keeps the state is always allowed.

    Attributes:
        field: the field that holds the state: text, or an enum of text.
        allowed: by state, the states that can follow; `()` for a state that is final.
        initial: the states in which an item may be created; any if empty.
        others: whether an item may also come into a state that is not named here, and then into any other.
        stamps: fields that the server sets: the time at which the item came into one of these states, and None in all
            other states. What callers send for them is ignored.
    """

    field: str
    allowed: Mapping[str, tuple[str, ...]]
    initial: tuple[str, ...] = ()
    others: bool = False
    stamps: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    def problems(self, known: EntityDefinition[Any]) -> Iterator[str]:
        """Yield what is wrong with the declaration, as sentences."""
        fields = known.model.model_fields
        for name in (self.field, *self.stamps):
            if name not in fields:
                yield f"transitions name {name!r}, which is not a field; write some of {', '.join(fields)}"
            elif name in known.key_fields or name in known.attachments:
                yield f"transitions name {name}, which is part of the key or an attachment: use another field"
        every = [*self.allowed.values(), *self.stamps.values(), self.initial]
        if wrong := [each for each in every if isinstance(each, str) or not isinstance(each, tuple)]:
            yield f'transitions of {self.field} name {wrong[0]!r}: write a tuple of states, such as ("CLOSED",)'
            return
        states = {*self.allowed, *(state for states in self.allowed.values() for state in states)}
        if untexted := [state for state in states if not isinstance(state, str)]:
            state = untexted[0]
            yield f"transitions of {self.field} name {state!r}: write the text, {getattr(state, 'value', state)!r}"
            return
        for state in (*self.initial, *(state for states in self.stamps.values() for state in states)):
            if state not in states:
                yield f"transitions of {self.field} name the state {state!r}; there are {', '.join(sorted(states))}"
        yield from self._unfinished(states, _members(fields.get(self.field)))

    def _unfinished(self, states: set[str], members: set[str]) -> Iterator[str]:
        """Yield what would leave states open that nobody meant: those without an entry, and misspelled members."""
        for state in () if self.others else sorted(map(str.__str__, states - self.allowed.keys())):
            yield f"transitions of {self.field} do not say what follows {state!r}: write {state!r}: () if nothing does"
        for state in sorted(states - members) if members else ():
            yield f"transitions of {self.field} name the state {state!r}; its enum has {', '.join(sorted(members))}"

    def require_initial(self, item: Entity) -> None:
        """Refuse a new item in a state that only an existing one can be in; raises `ValidationFailedError`."""
        state = _text(getattr(item, self.field))
        if self.initial and state not in self.initial:
            message = f"A new item is {' or '.join(self.initial)}."
            raise ValidationFailedError(FieldError(self.field, message, "initial_state"))

    def require(self, current: Entity, item: Entity) -> None:
        """Refuse an item whose state cannot follow that of the stored one; raises `TransitionRefusedError`."""
        before, after = _text(getattr(current, self.field)), _text(getattr(item, self.field))
        allowed = self.allowed.get(before)
        if allowed is None or after == before or after in allowed:
            return
        if not self.others or after in self.allowed:
            raise TransitionRefusedError(self.field, before, after, allowed)

    def stamped(self, current: Entity | None, item: Entity, now: float) -> dict[str, datetime | None]:
        """Return the fields that the server sets, for an item that replaces the current one, None for a new one."""
        state, values = _text(getattr(item, self.field)), dict[str, datetime | None]()
        before = None if current is None else _text(getattr(current, self.field))
        for name, states in self.stamps.items():
            since = None if current is None or before not in states else getattr(current, name)
            values[name] = (since or datetime.fromtimestamp(now, UTC)) if state in states else None
        return values


def _members(field: FieldInfo | None) -> set[str]:
    """Return the texts of a field's enum; none if it is not one."""
    kinds = plain_types(field.annotation) if field else ()
    return {str(each.value) for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum) for each in kind}


def begun(every: tuple[Transitions, ...], item: Entity, now: float) -> Entity:
    """Return a new item with its stamps; raises as `Transitions.require_initial`."""
    if not every:
        return item
    for each in every:
        each.require_initial(item)
    return _with_stamps(every, None, item, now)


def followed(every: tuple[Transitions, ...], current: Entity, item: Entity, now: float) -> Entity:
    """Return an item that replaces the stored one, with its stamps; raises as `Transitions.require`."""
    if not every:
        return item
    for each in every:
        each.require(current, item)
    return _with_stamps(every, current, item, now)


def _with_stamps(every: tuple[Transitions, ...], current: Entity | None, item: Entity, now: float) -> Entity:
    stamps = {name: value for each in every for name, value in each.stamped(current, item, now).items()}
    return item.model_copy(update=stamps) if stamps else item


def _text(state: Any) -> str:
    """Return a state as text; members of an enum are text too."""
    return str(getattr(state, "value", state))
