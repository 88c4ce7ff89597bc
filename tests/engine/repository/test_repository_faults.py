"""Lost answers, retries that meet their own write, other writers in between, and throttles."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.errors import (
    AlreadyExistsError,
    EngineUnavailableError,
    KeyRangeThrottledError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
)
from dynashard.testing.faults import (
    AttemptsOn,
    lost_after,
    lost_answer,
    lost_request,
    meanwhile,
    meanwhile_repeated,
    repeated,
    throttled,
    unreachable,
)
from tests.engine.stored_things import Account, Note, World, key, person

pytestmark = [pytest.mark.engine, pytest.mark.one_face]


def test_create_whose_answer_was_lost_recognises_itself(world: World) -> None:
    transport = world.faults(repeated("PutItem"))

    created = world.people.create(person())

    assert transport.waiting == []
    assert created == world.people.get(key())
    assert created.revision == world.only()["Rev"]["S"]


def test_a_create_replaced_before_its_answer_was_lost_is_done_if_the_item_proves_it(world: World) -> None:
    plain = world.people
    world.faults(meanwhile_repeated("PutItem", lambda: plain.update(key(), set={"mail": "other@x.org"})))

    created = world.people.create(person())

    assert created.mail == "ada@example.com"
    assert world.people.get(key()).mail == "other@x.org"


def test_a_create_overwritten_by_another_put_is_unknown_and_never_a_conflict(world: World) -> None:
    """Its item may have existed, or its request may still be executed, so "exists" would be wrong."""
    plain = world.people
    other = person(mail="other@x.org")
    transport = world.faults(meanwhile_repeated("PutItem", lambda: plain.batch_write(put=[other])))

    with pytest.raises(OutcomeUnknownError) as raised:
        world.people.create(person())

    assert transport.sent("PutItem") == 1
    assert raised.value.key == key()
    assert raised.value.revision == "rev-1"
    assert not raised.value.retryable


def test_create_that_loses_a_race_is_refused(world: World) -> None:
    world.faults(meanwhile("PutItem", lambda: world.people.create(person(mail="other@x.org"))))

    with pytest.raises(AlreadyExistsError):
        world.people.create(person())

    assert world.people.get(key()).mail == "other@x.org"


REPLACEMENTS: dict[str, Callable[[World], Any]] = {
    "blind": lambda world: world.people.replace(person(mail="new@x.org")),
    "read": lambda world: world.people.replace(world.people.get(key()).model_copy(update={"mail": "new@x.org"})),
    "blind if_match": lambda world: world.people.replace(person(mail="new@x.org"), if_match="rev-1"),
    "read if_match": lambda world: world.people.replace(
        world.people.get(key()).model_copy(update={"mail": "new@x.org"}), if_match="rev-1"
    ),
}


@pytest.mark.parametrize("replace", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_replace_whose_answer_was_lost_recognises_itself(world: World, replace: Callable[[World], Any]) -> None:
    world.people.create(person())
    transport = world.faults(repeated("UpdateItem"))

    replaced = replace(world)

    assert transport.waiting == []
    assert replaced == world.people.get(key())
    assert replaced.mail == "new@x.org"


def test_a_replace_without_an_expiry_recognises_itself(world: World) -> None:
    first = world.notes.create(Note(tenant="a", id="1"))
    world.faults(repeated("UpdateItem"))

    replaced = world.notes.replace(Note(tenant="a", id="1", text="new"), if_match=first.revision)

    assert world.notes.get(replaced).text == "new"
    assert replaced.revision == world.only()["Rev"]["S"]


CHANGES: dict[str, dict[str, Any]] = {
    "blind": {"add": {"visits": 1}},
    "with if_match": {"add": {"visits": 1}, "if_match": "rev-1"},
    "that reads first": {"add": {"visits": 1}, "set": {"team": "eng"}},
    "that reads first, with if_match": {"add": {"visits": 1}, "set": {"team": "eng"}, "if_match": "rev-1"},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_update_whose_answer_was_lost_is_applied_once(world: World, changes: dict[str, Any]) -> None:
    world.people.create(person())
    transport = world.faults(repeated("UpdateItem"))

    updated = world.people.update(key(), **changes)

    assert transport.waiting == []
    assert updated.visits == world.people.get(key()).visits == 1
    assert updated.revision == world.only()["Rev"]["S"]


@pytest.mark.parametrize("if_match", [None, "rev-1"])
def test_update_is_done_once_though_another_writer_came_after_it(world: World, if_match: str | None) -> None:
    plain = world.people
    plain.create(person())
    world.faults(meanwhile_repeated("UpdateItem", lambda: plain.update(key(), set={"mail": "b@x.org"})))

    updated = world.people.update(key(), add={"visits": 1}, if_match=if_match)

    assert updated.visits == world.people.get(key()).visits == 1


def test_update_that_was_lost_after_another_is_refused_if_it_named_a_revision(world: World) -> None:
    plain = world.people
    plain.create(person())
    world.faults(lost_after("UpdateItem", lambda: plain.update(key(), set={"mail": "b@x.org"})))

    with pytest.raises(RevisionMismatchError):
        world.people.update(key(), add={"visits": 1}, if_match="rev-1")

    assert world.people.get(key()).visits == 0


def test_update_without_a_revision_that_was_lost_is_unknown_and_not_sent_again(world: World) -> None:
    world.people.create(person())
    transport = world.faults(lost_request("UpdateItem"))

    with pytest.raises(OutcomeUnknownError):
        world.people.update(key(), add={"visits": 1})

    assert transport.sent("UpdateItem") == 1


def test_a_put_never_overwrites_a_later_write_of_another(world: World) -> None:
    """A second attempt without a condition would undo another writer's acknowledged write."""
    plain = world.accounts
    plain.create(Account(id="1", balance=1))

    def other() -> None:
        plain.update({"id": "1"}, set={"balance": 3}, if_match=plain.get({"id": "1"}).revision)

    world.faults(meanwhile_repeated("UpdateItem", other))

    world.accounts.put(Account(id="1", balance=2))

    assert world.accounts.get({"id": "1"}).balance == 3


def test_delete_whose_answer_was_lost_is_unknown_though_nothing_is_there(world: World) -> None:
    """Absence proves nothing: another may have deleted the item, and the late request may delete a new one."""
    world.people.create(person())
    transport = world.faults(repeated("DeleteItem"))

    with pytest.raises(OutcomeUnknownError):
        world.people.delete(key())

    assert transport.sent("DeleteItem") == 1
    assert world.raw() == []


def test_delete_never_deletes_a_new_item_of_another(world: World) -> None:
    plain = world.people
    plain.create(person())
    world.faults(meanwhile_repeated("DeleteItem", lambda: plain.create(person(mail="new@x.org"))))

    with pytest.raises(OutcomeUnknownError):
        world.people.delete(key())

    assert world.people.get(key()).mail == "new@x.org"


def test_a_delete_of_a_missing_item_is_not_found_after_a_throttle(world: World) -> None:
    transport = AttemptsOn(world.inner, throttled("DeleteItem"))
    world.transport = transport

    with pytest.raises(NotFoundError):
        world.people.delete(key())

    assert transport.attempts == 2


def test_delete_on_a_revision_is_refused_if_the_same_item_was_changed_instead(world: World) -> None:
    plain = world.people
    plain.create(person())
    read = plain.update(key(), set={"mail": "b@x.org"})
    world.faults(lost_after("DeleteItem", lambda: plain.update(key(), set={"mail": "c@x.org"})))

    with pytest.raises(RevisionMismatchError):
        world.people.delete(key(), if_match=read.revision)


def test_delete_on_a_revision_is_unknown_if_nothing_is_there(world: World) -> None:
    revision = world.people.create(person()).revision
    world.faults(repeated("DeleteItem"))

    with pytest.raises(OutcomeUnknownError):
        world.people.delete(key(), if_match=revision)


def test_a_throttle_after_a_lost_answer_is_not_reported_as_a_throttle(world: World) -> None:
    revision = world.people.create(person()).revision
    transport = AttemptsOn(
        world.inner, lost_answer("UpdateItem"), throttled("UpdateItem", nth=2), throttled("UpdateItem", nth=3)
    )
    world.transport = transport

    replaced = world.people.replace(person(mail="new@x.org"), if_match=revision)

    assert (transport.attempts, replaced.mail) == (4, "new@x.org")
    assert world.people.get(key()).revision == replaced.revision


def test_update_that_reads_first_survives_races(world: World) -> None:
    world.people.create(person())
    races = [meanwhile("UpdateItem", lambda: other.update(key(), add={"rank": 10}), nth=n) for n in (1, 2, 3)]
    other = world.people
    transport = world.faults(*races)

    updated = world.people.update(key(), set={"team": "eng"}, add={"visits": 1})

    assert transport.waiting == []
    assert transport.sent("UpdateItem") == 4
    assert (updated.rank, updated.visits) == (30, 1)
    assert world.entries("GSI2") == [("test.v1.Person:abc:eng:1", "030")]


def test_update_that_reads_first_and_names_a_revision_does_not_try_again(world: World) -> None:
    world.people.create(person())
    other = world.people
    transport = world.faults(meanwhile("UpdateItem", lambda: other.update(key(), add={"visits": 10})))

    with pytest.raises(RevisionMismatchError) as refused:
        world.people.update(key(), set={"team": "eng"}, if_match="rev-1")

    assert transport.sent("UpdateItem") == 1
    assert refused.value.current == world.only()["Rev"]["S"]


def test_update_that_reads_first_finds_out_that_the_item_went_away(world: World) -> None:
    world.people.create(person())
    other = world.people
    world.faults(meanwhile("UpdateItem", lambda: other.delete(key())))

    with pytest.raises(NotFoundError):
        world.people.update(key(), set={"team": "eng"})

    assert world.raw() == []


def test_update_of_an_adopted_item_does_not_overlook_another_writer(world: World) -> None:
    world.people.create(person())
    stored = world.only()
    del stored["Rev"]
    world.adopt(stored)
    other = world.people
    world.faults(meanwhile("UpdateItem", lambda: other.update(key(), add={"rank": 10})))

    world.people.update(key(), set={"team": "eng"})

    assert world.entries("GSI2") == [("test.v1.Person:abc:eng:1", "010")]


def test_update_gives_up_on_an_item_that_changes_each_time(world: World) -> None:
    world.people.create(person())
    other = world.people
    transport = world.faults(meanwhile("UpdateItem", lambda: other.update(key(), add={"rank": 1}), nth=None))

    with pytest.raises(RevisionMismatchError, match="changes too often to be updated; try again later"):
        world.people.update(key(), set={"team": "eng"})

    assert transport.sent("UpdateItem") == 8
    assert world.people.get(key()).team is None


def test_bounds_hold_against_another_writer(world: World) -> None:
    world.accounts.create(Account(id="1", balance=5))
    other = world.accounts
    world.faults(meanwhile("UpdateItem", lambda: other.update({"id": "1"}, add={"balance": -4})))

    with pytest.raises(Exception, match="balance: Input should be greater than or equal to 0"):
        world.accounts.update({"id": "1"}, add={"balance": -2})

    assert world.accounts.get({"id": "1"}).balance == 1


def test_replace_that_keeps_the_stamp_survives_races(world: World) -> None:
    other = world.people
    transport = world.faults(
        meanwhile("PutItem", lambda: other.create(person()), nth=1),
        meanwhile("UpdateItem", lambda: other.update(key(), add={"visits": 1}), nth=1),
        meanwhile("UpdateItem", lambda: other.delete(key()), nth=2),
    )

    written = world.people.put(person(mail="new@x.org"))

    assert transport.waiting == []
    assert (written.created, world.people.get(key()).mail) == (True, "new@x.org")


def test_replace_gives_up_on_an_item_that_changes_each_time(world: World) -> None:
    world.people.create(person())
    other = world.people
    world.faults(meanwhile("UpdateItem", lambda: other.update(key(), add={"visits": 1}), nth=None))

    with pytest.raises(RevisionMismatchError, match="changes too often to be replaced; try again later"):
        world.people.replace(person(mail="new@x.org"))

    assert world.people.get(key()).mail == "ada@example.com"


WRITES: dict[str, tuple[str, Callable[[World], Any]]] = {
    "create": ("PutItem", lambda world: world.people.create(person(id="2"))),
    "replace": ("UpdateItem", lambda world: world.people.replace(person())),
    "update": ("UpdateItem", lambda world: world.people.update(key(), add={"visits": 1})),
    "delete": ("DeleteItem", lambda world: world.people.delete(key())),
    "get": ("GetItem", lambda world: world.people.get(key())),
    "exists": ("GetItem", lambda world: world.people.exists(key())),
}


@pytest.mark.parametrize(("operation", "attempt"), WRITES.values(), ids=WRITES)
def test_a_throttle_that_outlasts_retries_is_raised_and_changes_nothing(
    world: World, operation: str, attempt: Callable[[World], Any]
) -> None:
    world.people.create(person())
    stored = world.raw()
    world.faults(throttled(operation))

    with pytest.raises(KeyRangeThrottledError) as refused:
        attempt(world)

    assert refused.value.retryable
    assert world.raw() == stored


@pytest.mark.parametrize(("operation", "attempt"), WRITES.values(), ids=WRITES)
def test_a_request_that_never_arrives_is_reported_and_changes_nothing(
    world: World, operation: str, attempt: Callable[[World], Any]
) -> None:
    world.people.create(person())
    stored = world.raw()
    world.faults(lost_request(operation))

    with pytest.raises(EngineUnavailableError):
        attempt(world)

    assert world.raw() == stored


@pytest.mark.parametrize(("operation", "attempt"), WRITES.values(), ids=WRITES)
def test_the_outcome_is_known_if_no_connection_was_made(
    world: World, operation: str, attempt: Callable[[World], Any]
) -> None:
    world.people.create(person())
    world.faults(unreachable(operation))

    with pytest.raises(EngineUnavailableError) as refused:
        attempt(world)

    assert refused.value.retryable
    assert not isinstance(refused.value, OutcomeUnknownError)


def test_a_lost_answer_is_unknown_if_the_item_cannot_be_read(world: World) -> None:
    world.faults(lost_answer("PutItem"), lost_request("GetItem"))

    with pytest.raises(OutcomeUnknownError, match="if its revision is rev-1, it was applied") as refused:
        world.people.create(person())

    assert refused.value.details == {"resend": False, "key": key(), "revision": "rev-1"}
    assert world.people.exists(key())
