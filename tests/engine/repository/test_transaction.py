"""Transactions under stable counts: all steps or none, each with the effects of a single write."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard import Check, Create, Delete, Put, Step, Update
from dynashard.errors import (
    InvalidKeyError,
    InvalidQueryError,
    InvalidValueError,
    ItemTooLargeError,
    OutcomeUnknownError,
    TransactionCanceledError,
    TransactionConflictError,
    TransactionRefusedError,
)
from dynashard.testing.faults import (
    Fault,
    FaultyTransport,
    conflict,
    lost_answer,
    lost_request,
    meanwhile,
    meanwhile_repeated,
    repeated,
)
from dynashard.transport import metered
from tests.engine.stored_things import Account, Event, Note, Person, World, key, person

pytestmark = pytest.mark.engine


def note(identity: str = "1", **fields: Any) -> Note:
    return Note(tenant="abc", id=identity, **fields)


def refused(world: World, *steps: Step) -> tuple[int, str]:
    before = world.raw()
    with pytest.raises(TransactionRefusedError) as error:
        world.transact(*steps)
    assert world.raw() == before
    return error.value.step, error.value.reason


def test_all_kinds_of_steps_in_one_request(world: World) -> None:
    world.notes.create(note("gone"))
    kept = world.notes.create(note("kept", reads=1))
    changed = world.notes.create(note("changed"))
    sent = world.faults()

    stored = world.transact(
        Create(person()),
        Put(note("put", text="new")),
        Update(Note, key("changed"), set={"text": "after"}, add={"reads": 2}, if_match=changed.revision),
        Delete(Note, key("gone")),
        Check(Note, key("kept"), kept.revision),
        Check(Note, key("never"), None),
    )

    assert [call.operation for call in sent.calls] == ["TransactWriteItems"]
    assert world.people.get(key()) == stored[0]
    assert world.notes.get(key("put")) == stored[1]
    assert stored[2:] == [None] * 4
    after = world.notes.get(key("changed"))
    assert (after.text, after.reads) == ("after", 2)
    assert after.revision not in (None, changed.revision)
    assert not world.notes.exists(key("gone"))


def test_a_created_item_is_stored_as_a_single_write_stores_it(world: World) -> None:
    world.people.create(person(id="1", team="blue", rank=7))
    world.transact(Create(person(id="2", team="blue", rank=7)))

    one, other = sorted(world.raw(), key=lambda item: str(item["SK"]))

    assert one.keys() == other.keys()
    different = {"PK", "SK", "Rev", "id"}
    assert {n: v for n, v in one.items() if n not in different} == {
        n: v for n, v in other.items() if n not in different
    }
    assert len(world.entries("GSI2")) == 2


@pytest.mark.parametrize("write", ["single", "transaction"])
def test_an_update_moves_its_item_between_indexes(world: World, write: str) -> None:
    world.people.create(person(team="blue", rank=7))
    world.clock.at += 60
    if write == "single":
        world.people.update(key(), set={"mail": "new@example.com"}, remove=["team"])
    else:
        world.transact(Update(Person, key(), set={"mail": "new@example.com"}, remove=["team"]))

    assert [sort for _, sort in world.entries("GSI1")] == ["new@example.com"]
    assert world.entries("GSI2") == []
    assert world.people.get(key()).changed == world.clock.time()


def test_a_put_keeps_the_creation_stamp(world: World) -> None:
    made = world.people.create(person()).made
    world.clock.at += 60

    [stored] = world.transact(Put(person(nickname="later")))

    assert stored.made == made
    assert stored.changed == world.clock.time()
    assert world.people.get(key()) == stored


REFUSED: dict[str, tuple[Callable[[str | None], Step], str]] = {
    "create": (lambda _: Create(note("there")), "already_exists"),
    "update of nothing": (lambda _: Update(Note, key("never"), set={"text": "x"}), "not_found"),
    "update of an expired": (lambda _: Update(Person, key("expired"), add={"visits": 1}), "not_found"),
    "update of another": (
        lambda _: Update(Note, key("there"), set={"text": "x"}, if_match="other"),
        "revision_mismatch",
    ),
    "read update of nothing": (lambda _: Update(Note, key("never"), add={"stars": 1}), "not_found"),
    "read update of another": (
        lambda _: Update(Note, key("there"), add={"stars": 1}, if_match="x"),
        "revision_mismatch",
    ),
    "put over another": (lambda _: Put(note("there"), if_match="other"), "revision_mismatch"),
    "put over nothing": (lambda _: Put(note("never"), if_match="other"), "revision_mismatch"),
    "stamped put over nothing": (lambda _: Put(person(id="x"), if_match="other"), "revision_mismatch"),
    "delete of nothing": (lambda _: Delete(Note, key("never")), "not_found"),
    "delete of another": (lambda _: Delete(Note, key("there"), if_match="other"), "revision_mismatch"),
    "careless delete of another": (
        lambda _: Delete(Note, key("there"), "other", missing="ignore"),
        "revision_mismatch",
    ),
    "check of another": (lambda _: Check(Note, key("there"), "other"), "revision_mismatch"),
    "check of nothing": (lambda _: Check(Note, key("never"), "other"), "revision_mismatch"),
    "check of none": (lambda _: Check(Note, key("there"), None), "already_exists"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("number", [0, 1])
def test_a_refused_step_undoes_all(world: World, case: str, number: int) -> None:
    there = world.notes.create(note("there"))
    world.people.create(person(id="expired", until=world.clock.time()))
    step, reason = REFUSED[case]
    steps: list[Step] = [Create(note("other"))]
    steps.insert(number, step(there.revision))

    assert refused(world, *steps) == (number, reason)


def test_a_delete_may_ignore_a_missing_item(world: World) -> None:
    there = world.notes.create(note("there"))

    world.transact(
        Delete(Note, key("never"), missing="ignore"),
        Delete(Note, key("never either"), if_match="any", missing="ignore"),
        Delete(Note, key("there"), if_match=there.revision, missing="ignore"),
    )

    assert world.raw() == []


def test_an_expired_item_counts_as_missing(world: World) -> None:
    gone = world.clock.time()
    for identity in "1234":
        world.people.create(person(id=identity, until=gone, visits=9))

    world.transact(
        Create(person(id="1")),
        Check(Person, key("2"), None),
        Delete(Person, key("3"), missing="ignore"),
        Put(person(id="4", mail="new@example.com")),
    )

    assert world.people.get(key("1")).visits == 0
    assert world.people.get(key("4")).mail == "new@example.com"


@pytest.mark.parametrize("times", [1, 3])
def test_adding_creates_a_missing_item(world: World, times: int) -> None:
    for _ in range(times):
        world.transact(Update(Note, key(), add={"reads": 2, "labels": {"a"}}, missing="create"))

    stored = world.notes.get(key())
    assert (stored.reads, stored.labels, stored.text) == (2 * times, {"a"}, "")
    [item] = world.raw()
    assert item["Type"] == {"S": "test.v1.Note"}
    assert item["Rev"] == {"S": stored.revision}


def test_an_addition_that_reads_first_is_applied_within_its_bounds(world: World) -> None:
    for _ in range(3):
        world.transact(Update(Note, key(), add={"stars": 1}, missing="create"))
    world.transact(Update(Account, {"id": "1"}, add={"balance": 5}, missing="create"))

    assert world.notes.get(key()).stars == 3
    assert world.accounts.get({"id": "1"}).balance == 5
    with pytest.raises(InvalidValueError, match="stars"):
        world.transact(Update(Note, key(), add={"stars": 3}, missing="create"))


def test_adding_does_not_continue_from_an_expired_item(world: World) -> None:
    world.adopt({"PK": {"S": "test.v1.Note:abc"}, "SK": {"S": "1"}, "reads": {"N": "7"}, "ExpiresAt": {"N": "1"}})

    world.transact(Update(Note, key(), add={"reads": 2}, missing="create"))

    assert world.notes.get(key()).reads == 2


def test_adding_continues_from_an_item_that_took_the_place_of_an_expired_one_in_between(world: World) -> None:
    world.adopt({"PK": {"S": "test.v1.Note:abc"}, "SK": {"S": "1"}, "reads": {"N": "7"}, "ExpiresAt": {"N": "1"}})
    other = world.of(Note)
    sent = world.faults(meanwhile("TransactWriteItems", lambda: other.create(note(reads=3)), nth=2))

    world.transact(Update(Note, key(), add={"reads": 2}, missing="create"))

    assert sent.sent("TransactWriteItems") == 3
    assert world.notes.get(key()).reads == 5


@pytest.mark.parametrize(
    "step",
    [
        Update(Person, key(), add={"visits": 1}, missing="create"),  # A person needs a mail address.
        Update(Note, key(), set={"text": "x"}, add={"reads": 1}, missing="create"),
        Update(Note, key(), missing="create"),
        Update(Note, key(), add={"reads": 1}, if_match="x", missing="create"),
        Update(Note, key(), add={"reads": "many"}),
        Update(Note, key(), set={"nothing": 1}),
    ],
)
def test_an_impossible_step_is_refused_without_a_request(world: World, step: Step) -> None:
    sent = world.faults()

    with pytest.raises(InvalidValueError):
        world.transact(Create(note("other")), step)

    assert sent.calls == []


def test_one_item_in_two_steps_is_refused(world: World) -> None:
    with pytest.raises(InvalidKeyError, match="0 and 2"):
        world.transact(Create(note()), Create(note("2")), Check(Note, key(), None))


def test_items_without_a_home_are_refused(world: World) -> None:
    with pytest.raises(InvalidQueryError, match=r"test\.v1\.Event"):
        world.transact(Create(Event(tenant="abc", id="1")))


def test_at_most_a_hundred_steps_are_accepted(world: World) -> None:
    world.transact(*(Create(note(str(n))) for n in range(100)))
    sent = world.faults()

    with pytest.raises(InvalidQueryError, match="101 stored writes"):
        world.transact(*(Create(note(f"x{n}")) for n in range(101)))
    with pytest.raises(ItemTooLargeError):
        world.transact(*(Create(note(f"x{n}", text="x" * 390_000)) for n in range(11)))

    assert len(world.raw()) == 100
    assert sent.calls == []


def test_no_steps_send_nothing(world: World) -> None:
    sent = world.faults()

    assert world.transact() == []
    assert sent.calls == []


def test_each_step_costs_two_units(world: World) -> None:
    there = world.notes.create(note("there"))

    with metered() as meter:
        world.transact(Create(note()), Update(Note, key("c"), add={"reads": 1}, missing="create"))
        world.transact(Check(Note, key("there"), there.revision))

    assert meter.consumed.requests == 2
    assert meter.consumed.write_units == 6
    assert meter.consumed.read_units == 0


def conflicted() -> Fault:
    return conflict("TransactWriteItems")


@pytest.mark.parametrize("fault", [conflicted, lambda: repeated("TransactWriteItems")], ids=["conflict", "sent twice"])
def test_a_transaction_is_done_once(world: World, fault: Callable[[], Fault]) -> None:
    world.notes.create(note(reads=1))
    sent = world.faults(fault())

    world.transact(Update(Note, key(), add={"reads": 1}), Create(note("new")))

    assert sent.waiting == []
    assert world.notes.get(key()).reads == 2


def test_a_transaction_sent_twice_is_done_once_despite_a_write_in_between(world: World) -> None:
    world.notes.create(note(reads=1))
    other = world.of(Note)
    world.faults(meanwhile_repeated("TransactWriteItems", lambda: other.update(key(), add={"reads": 10})))

    world.transact(Update(Note, key(), add={"reads": 1}))

    assert world.notes.get(key()).reads == 12


def in_progress_after_all() -> Fault:
    """Apply the request and lose its answer; the request sent again is answered as in progress."""

    def strike(send: Any, request: Any) -> Any:
        send(request)
        raise TransactionConflictError(
            "under way", operation="TransactWriteItems", aws_code="TransactionInProgressException"
        )

    return Fault("TransactWriteItems", strike)


def test_a_transaction_in_progress_is_requested_again(world: World) -> None:
    world.notes.create(note(reads=1))
    sent = world.faults(in_progress_after_all())

    world.transact(Update(Note, key(), add={"reads": 1}))

    assert world.notes.get(key()).reads == 2
    assert sent.calls[0].request == sent.calls[1].request


def test_a_cancellation_without_reasons_ends_the_transaction(world: World) -> None:
    def cancel(_send: Any, _request: Any) -> Any:
        raise TransactionCanceledError(
            "cancelled", operation="TransactWriteItems", aws_code="TransactionCanceledException", reasons=()
        )

    sent = world.faults(Fault("TransactWriteItems", cancel))

    with pytest.raises(TransactionCanceledError):
        world.transact(Create(note("new")))
    assert (sent.sent("TransactWriteItems"), world.raw()) == (1, [])


def test_a_transaction_recognises_its_own_work_without_its_token(world: World) -> None:
    """The engine has forgotten the token."""
    world.notes.create(note("gone"))

    def strike(send: Any, request: Any) -> Any:
        send(request)
        return send({**request, "ClientRequestToken": "another"})

    world.faults(Fault("TransactWriteItems", strike))

    world.transact(Delete(Note, key("gone")), Create(note("new")))

    assert [item["SK"]["S"] for item in world.raw()] == ["new"]


def test_items_read_first_are_read_again_after_a_write_in_between(world: World) -> None:
    world.people.create(person(visits=1))
    other = world.of(Person)
    sent = world.faults(meanwhile("TransactWriteItems", lambda: other.update(key(), add={"visits": 1})))

    [stored] = world.transact(Put(person(nickname="new")))

    assert sent.sent("TransactWriteItems") == 2
    assert world.people.get(key()) == stored


def test_a_lost_answer_is_settled_by_its_token(world: World) -> None:
    sent = world.faults(lost_answer("TransactWriteItems"))

    world.transact(Create(note()))

    assert sent.sent("TransactWriteItems") == 2
    assert len(world.raw()) == 1


def test_a_transaction_that_cannot_be_settled_is_unknown(world: World) -> None:
    world.faults(lost_request("TransactWriteItems", nth=None))

    with pytest.raises(OutcomeUnknownError) as of_one:
        world.transact(Create(note()))
    with pytest.raises(OutcomeUnknownError) as of_two:
        world.transact(Create(note()), Create(note("2")))

    assert of_one.value.key == key()
    assert of_one.value.revision
    # One item and its revision would say nothing of the other.
    assert (of_two.value.key, of_two.value.revision) == (None, None)


def test_lasting_conflicts_are_reported(world: World) -> None:
    sent: FaultyTransport = world.faults(conflict("TransactWriteItems", nth=None))

    with pytest.raises(TransactionConflictError):
        world.transact(Create(note()))

    assert sent.sent("TransactWriteItems") > 5
    assert sum(world.pauses) <= world.retry_seconds
