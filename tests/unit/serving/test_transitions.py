"""Transitions that do not say what they mean are refused while the entity is declared, with what to write."""

from enum import Enum, StrEnum
from typing import Any

import pytest

from dynashard import DeclarationError, Entity, Key, Registry
from dynashard_serving.declare import Exposed, Transitions

pytestmark = pytest.mark.unit


class State(StrEnum):
    OPEN = "open"
    DONE = "done"


class Plain(Enum):
    OPEN = "open"
    DONE = "done"


class Task(Entity, name="task.v1.StateTask", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    state: State = State.OPEN
    plain: Plain = Plain.OPEN
    text: str = "open"


def exposed(*given: Any, **options: Any) -> Exposed:
    return Exposed(Task, path="tasks", transitions=(Transitions(*given, **options),))


REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "final without its own entry": (
        ("text", {"open": ("done",)}),
        "transitions of text do not say what follows 'done': write 'done': () if nothing does",
    ),
    "members that are not texts": (
        ("plain", {Plain.OPEN: (Plain.DONE,), Plain.DONE: ()}),
        "write the text, '",
    ),
    "misspelled member": (
        ("state", {"opened": ("done",), "done": ()}),
        "transitions of state name the state 'opened'; its enum has done, open",
    ),
    "no such field": (("stat", {"open": ()}), "transitions name 'stat', which is not a field"),
}


@pytest.mark.parametrize(("given", "reason"), REFUSED.values(), ids=REFUSED)
def test_wrong_transitions_are_refused_with_what_to_write(given: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        exposed(*given)

    assert reason in str(refused.value)


@pytest.mark.parametrize("field", ["state", "plain", "text"])
def test_all_states_may_be_final_but_one(field: str) -> None:
    assert exposed(field, {"open": ("done",), "done": ()}).path == "tasks"


def test_members_of_an_enum_of_texts_name_states() -> None:
    assert exposed("state", {State.OPEN: (State.DONE,), State.DONE: ()}, initial=(State.OPEN,)).path == "tasks"


def test_with_others_a_state_may_have_no_entry() -> None:
    assert exposed("text", {"open": ("done",)}, others=True).path == "tasks"
