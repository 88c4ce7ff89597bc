"""Writers of attachments that die or fail at any request, and the readers and sweeps after them."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from dynashard import Collection, definition
from dynashard.errors import (
    AlreadyExistsError,
    DynashardError,
    EngineUnavailableError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
    ThrottledError,
    UndecodableItemError,
)
from dynashard.testing.faults import (
    Fault,
    Late,
    about,
    lost_answer,
    lost_request,
    meanwhile,
    meanwhile_repeated,
    repeated,
    throttled,
)
from dynashard.transport import Transport
from dynashard_patterns.attachments.sweep import Swept, sweep
from tests.engine.patterns.attachment_world import (
    KEY,
    Dying,
    Killed,
    Report,
    everything,
    large,
    pointed,
    reports,
    stored,
    versions,
)
from tests.engine.stored_things import NOON, World

pytestmark = pytest.mark.engine

DAY = 24 * 60 * 60
Act = Callable[[Collection[Report], Report], object]
NEW = large(2, 600)
ACTS: dict[str, tuple[bool, Act]] = {
    "create": (False, lambda on, key: on.create(Report(id=key.id, details=NEW))),
    "put": (True, lambda on, key: on.put(Report(id=key.id, title="new", details=NEW))),
    "update": (True, lambda on, key: on.update(key, set={"details": NEW, "title": "new"})),
    "remove": (True, lambda on, key: on.update(key, set={"details": None, "title": "new"})),
    "delete": (True, lambda on, key: on.delete(key)),
}


def swept(world: World, transport: Transport | None = None) -> Swept:
    store = world.store if transport is None else replace(world.store, transport=transport)
    return list(sweep(store, definition(Report)))[-1]


@pytest.mark.parametrize("name", ACTS)
def test_a_writer_killed_at_any_request_leaves_one_version_and_a_sweep_keeps_only_the_current_one(
    world: World, name: str
) -> None:
    exists, act = ACTS[name]
    old = {"old": 1}
    done = False
    seen = set()
    for requests in range(20):
        key = Report(id=f"{name}-{requests}")
        if exists:
            reports(world).create(Report(id=key.id, details=old, title="old"))
        try:
            act(reports(world, Dying(world.inner, before=requests)), key)
            done = True
        except Killed:
            pass

        found = reports(world).find(key, include=["details"])

        # Summary and details come from the same write.
        states = {"old": ("old", old), "new": ("new", None if name == "remove" else NEW)}
        if name == "create":
            states = {"new": ("", NEW)}
        state = next(
            (each for each, (t, d) in states.items() if found and (found.title, found.details) == (t, d)), None
        )
        assert (state is not None) == (found is not None)
        seen.add(state)
        if done:
            break
    assert done
    assert len(seen) == 2

    assert versions(world) > pointed(world)
    world.clock.at += DAY - 1
    assert swept(world).removed == 0
    world.clock.at += 2
    assert swept(world).removed > 0
    assert versions(world) == pointed(world)
    assert swept(world).removed == 0


def test_a_sweep_removes_pieces_of_expired_items_after_the_allowance_for_clock_skew(world: World) -> None:
    reports(world).create(Report(details=[1], until=NOON + timedelta(days=2)))
    reports(world).create(Report(id="2", details=[2]))
    world.clock.at += 2 * DAY + 60
    assert swept(world) == Swept(versions=2, young=0, removed=0, pieces=0)

    world.clock.at += DAY
    assert list(sweep(world.store, definition(Report), dry=True))[-1].removed == 1
    assert len(versions(world)) == 2
    assert swept(world) == Swept(versions=2, young=0, removed=1, pieces=1)

    assert len(versions(world)) == 1
    assert reports(world).get({"tenant": "abc", "id": "2"}, include=["details"]).details == [2]


def test_a_reader_overtaken_by_a_writer_gets_the_new_version(world: World) -> None:
    reports(world).create(Report(title="old", details=large(1)))
    plain = reports(world, world.inner)
    world.faults(meanwhile("GetItem", lambda: plain.replace(Report(title="new", details=large(2))), nth=2))

    found = reports(world).get(KEY, include=["details"])

    assert (found.title, found.details) == ("new", large(2))
    assert len(world.pauses) == 1


def test_a_reader_that_is_always_overtaken_gives_up_at_its_deadline(world: World) -> None:
    plain = reports(world, world.inner)
    plain.create(Report(details=[0]))
    reads = 0

    def replaced() -> None:
        nonlocal reads
        reads += 1
        if reads % 2 == 0:
            plain.replace(Report(details=[reads]))

    world.faults(meanwhile("GetItem", replaced, nth=None))

    with pytest.raises(DynashardError, match="written by others all the time"):
        reports(world).get(KEY, include=["details"])
    assert sum(world.pauses) <= 20


def test_a_reader_whose_item_is_deleted_meanwhile_finds_none(world: World) -> None:
    plain = reports(world, world.inner)
    plain.create(Report(details=[0]))
    world.faults(meanwhile("GetItem", lambda: plain.delete(KEY), nth=2))

    assert reports(world).find(KEY, include=["details"]) is None


def test_lost_or_damaged_pieces_are_reported_and_can_be_rewritten(world: World) -> None:
    reports(world).create(Report(details=[0]))
    [piece] = [item for item in everything(world) if item["SK"]["S"].startswith("p#")]
    key = {name: piece[name] for name in ("PK", "SK")}

    world.adopt({**piece, "Data": {"B": "AAAA"}})
    with pytest.raises(UndecodableItemError, match="are damaged"):
        reports(world).get(KEY, include=["details"])
    world.dynamodb.call("DeleteItem", TableName=world.table, Key=key)
    with pytest.raises(UndecodableItemError, match="pieces of details are gone"):
        reports(world).get(KEY, include=["details"])

    assert reports(world).get(KEY).id == "1"
    reports(world).replace(Report(details=[1]))
    assert reports(world).get(KEY, include=["details"]).details == [1]
    assert versions(world) == pointed(world)


@pytest.mark.parametrize("operation", ["create", "replace", "update"])
def test_a_write_sent_twice_is_done_once(world: World, operation: str) -> None:
    if operation != "create":
        reports(world).create(Report(details=[0]))
    # A new item is put after its manifest and its piece.
    world.faults(repeated("PutItem", nth=3) if operation == "create" else repeated("UpdateItem"))

    if operation == "update":
        reports(world).update(KEY, set={"details": large(3, 10)})
    else:
        getattr(reports(world), operation)(Report(details=large(3, 10)))

    assert reports(world).get(KEY, include=["details"]).details == large(3, 10)
    assert versions(world) == pointed(world)


def test_a_write_replaced_before_its_answer_came_is_done_and_not_written_again(
    world: World,
) -> None:
    plain = reports(world, world.inner)
    plain.create(Report(details=[0]))
    world.faults(meanwhile_repeated("UpdateItem", lambda: plain.replace(Report(details=["other"]))))

    reports(world).replace(Report(details=["mine"]))

    assert reports(world).get(KEY, include=["details"]).details == ["other"]
    assert versions(world) == pointed(world)


def test_a_version_kept_by_another_writer_is_not_removed(world: World) -> None:
    """The other writer omitted the field, so the item still points to the version of the first."""
    plain = reports(world, world.inner)
    world.faults(meanwhile_repeated("PutItem", lambda: plain.replace(Report(title="other")), nth=3))

    reports(world).create(Report(title="mine", details=["mine"]))

    found = reports(world).get(KEY, include=["details"])
    assert (found.title, found.details) == ("other", ["mine"])


@pytest.mark.parametrize("fault", [lost_answer("UpdateItem"), lost_request("UpdateItem")], ids=["lost", "never"])
def test_a_write_of_unknown_outcome_is_left_to_the_sweep(world: World, fault: Fault) -> None:
    plain = reports(world, world.inner)
    plain.create(Report(title="old", details=["old"]))
    world.faults(fault, lost_request("GetItem", nth=2))

    with pytest.raises(EngineUnavailableError):
        reports(world).replace(Report(title="new", details=["new"]))

    found = plain.get(KEY, include=["details"])
    assert found.details == [found.title]
    assert len(versions(world)) == 2
    world.faults()
    world.clock.at += DAY + 1
    assert swept(world).removed == 1
    assert plain.get(KEY, include=["details"]).details == [found.title]


def test_a_guarded_delete_whose_answer_was_lost_is_done(world: World) -> None:
    reports(world).create(Report(details=["old"]))
    transport = world.faults(repeated("DeleteItem"))

    reports(world).delete(KEY, handling="guarded")

    assert transport.waiting == []
    assert reports(world).find(KEY) is None


def test_a_guarded_delete_continues_if_the_item_is_changed_meanwhile(world: World) -> None:
    plain = reports(world, world.inner)
    plain.create(Report(details=["old"]))
    world.faults(meanwhile("DeleteItem", lambda: plain.replace(Report(details=["new"]))))

    reports(world).delete(KEY, handling="guarded")

    assert everything(world) == []


@pytest.mark.parametrize("exists", [True, False], ids=["another revision", "nothing"])
def test_a_guarded_delete_that_a_read_refuses_is_not_sent(world: World, *, exists: bool) -> None:
    if exists:
        reports(world).create(Report(details=["old"]))
    transport = world.faults(lost_request("DeleteItem"))

    with pytest.raises(RevisionMismatchError):
        reports(world).delete(KEY, if_match="another", handling="guarded")
    if not exists:
        with pytest.raises(NotFoundError):
            reports(world).delete(KEY, handling="guarded")

    assert transport.sent("DeleteItem") == 0


def test_a_guarded_create_that_a_read_refuses_is_not_sent(world: World) -> None:
    reports(world).create(Report(details=["old"]))
    transport = world.faults(lost_request("PutItem"))

    with pytest.raises(AlreadyExistsError):
        reports(world).create(Report(details=["mine"]), handling="guarded")

    assert transport.sent("PutItem") == 0


def test_throttled_pieces_leave_nothing_behind(world: World) -> None:
    world.faults(throttled("PutItem", nth=3))

    with pytest.raises(ThrottledError):
        reports(world).create(Report(details=large(1)))

    assert everything(world) == []


def test_a_piece_that_arrives_after_its_write_has_failed_is_found_by_a_sweep(world: World) -> None:
    """Another piece of the version is throttled, so it is certain that no item points to the version."""
    late = Late("PutItem", nth=3)
    world.faults(throttled("PutItem", nth=2), late.fault)

    with pytest.raises(EngineUnavailableError):
        reports(world).create(Report(details=large(1)))
    late.arrive()
    world.faults()
    world.clock.at += DAY + 1
    swept(world)

    assert everything(world) == []


def test_a_failed_removal_does_not_fail_a_finished_write(world: World) -> None:
    reports(world).create(Report(details=[1]))
    world.faults(throttled("DeleteItem", nth=None))

    reports(world).replace(Report(details=[2]))

    assert reports(world).get(KEY, include=["details"]).details == [2]
    world.faults()
    world.clock.at += DAY + 1
    assert swept(world).removed == 1
    assert versions(world) == pointed(world)


def test_a_writer_that_slept_too_long_starts_again(world: World) -> None:
    """A sweep may have removed its pieces by then."""
    plain = reports(world, world.inner)
    plain.create(Report(details=["old"]))

    def others() -> None:
        plain.update(KEY, set={"title": "other"})
        world.clock.at += DAY + 1
        assert swept(world, world.inner).removed == 1

    world.faults(meanwhile("UpdateItem", others))

    reports(world).replace(Report(details=["new"]))

    assert reports(world).get(KEY, include=["details"]).details == ["new"]
    assert versions(world) == pointed(world)


def test_a_writer_that_gives_up_removes_its_version(world: World) -> None:
    plain = reports(world, world.inner)
    plain.create(Report(details=["old"]))
    writes = 0

    def other() -> None:
        nonlocal writes
        writes += 1
        plain.update(KEY, set={"title": str(writes)})

    world.faults(meanwhile("UpdateItem", other, nth=None))

    with pytest.raises(RevisionMismatchError, match="changes too often"):
        reports(world).replace(Report(details=large(1)))

    assert versions(world) == pointed(world)
    assert stored(world)["test.v1.Report~details"]


def test_each_write_of_a_batch_has_its_own_outcome(world: World) -> None:
    reports(world).create(Report(id="old"))
    world.faults(
        about('"rep-a"', throttled("PutItem")),
        about('"rep-b"', lost_request("PutItem")),
        about('"rep-c"', lost_answer("PutItem")),
        about('"old"', lost_request("DeleteItem")),
    )
    batch = [Report(id=f"rep-{each}", title=each) for each in "abcd"]

    outcomes = reports(world).try_batch_write(
        put=batch, delete=[{"tenant": "abc", "id": each} for each in ("old", "x")]
    )

    codes = [outcome and outcome.code for outcome in outcomes]
    assert codes == ["key_range_throttled", "outcome_unknown", None, None, "outcome_unknown", None]
    assert sorted(item["title"]["S"] for item in everything(world)) == ["", "c", "d"]


def test_an_error_for_a_batch_names_the_items_that_it_speaks_for(world: World) -> None:
    world.faults(about('"1"', throttled("PutItem")), about('"2"', lost_request("PutItem")))

    with pytest.raises(OutcomeUnknownError) as raised:
        reports(world).batch_write(put=[Report(id=each) for each in "123"])

    assert raised.value.details == {
        "resend": False,
        "keys": [{"tenant": "abc", "id": "2"}],
        "unprocessed": [{"tenant": "abc", "id": "1"}],
    }
    assert [item["id"]["S"] for item in everything(world)] == ["3"]


def test_an_attachment_that_is_lost_leaves_no_doubt_about_its_item(world: World) -> None:
    world.faults(lost_request("PutItem", nth=1))

    with pytest.raises(EngineUnavailableError, match="item was not written") as raised:
        reports(world).put(Report(details=[1]))

    assert not isinstance(raised.value, OutcomeUnknownError)
    assert everything(world) == []
