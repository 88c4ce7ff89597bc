"""`dynashard verify --only`: copies, roll-ups and attachments are compared and repaired by themselves."""

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import pytest

from domain.samples.incidents import Incident
from domain.samples.participations import PARTICIPATIONS, Participation
from domain.samples.pings import Ping
from domain.samples.plays import PLAYS
from domain.samples.revenue import Licensor
from dynashard import Dynashard, Entity, Key, Registry, Shards
from dynashard.runtime import Runtime
from dynashard.topology import DeclaredTopology
from dynashard.transport.interface import Wire
from dynashard_patterns import Attachment
from dynashard_patterns.rollups import ItemCounter
from dynashard_tools.verify import Declared, Part, Report, Task, Verifier
from tests.engine.command_line import CURSOR_KEYS
from tests.engine.patterns.attachment_world import Dying, Killed
from tests.engine.tools.reshard_world import ReshardWorld
from tests.engine.tools.verify_world import TENANT, YESTERDAY, delete, put, report, stored, typed

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.engine

DAYS: Final = 24 * 60 * 60
DAY: Final = f"{YESTERDAY:%Y-%m-%d}"


def fire(world: ReshardWorld) -> Incident:
    """Create an incident that has three copies as soon as they are made."""
    made = Incident(tenant_id=TENANT, number=1, title="Fire", participants=["user_ada", "user_bob"], team="team_x")
    return world.layer().collection(Incident).create(made)


def test_copies_are_compared_and_repaired_without_a_look_at_anything_else(world: ReshardWorld) -> None:
    mine, copies = fire(world), ("incidents", TENANT, "--only", "copies")

    checked, mended, right = report(world, *copies), report(world, *copies, "--mend"), report(world, *copies)
    world.layer().collection(Incident).delete(mine)
    orphans = report(world, "participations", "--only", "copies", "--mend")
    left = world.layer().collection(Participation).list({"tenant_id": TENANT, "incident_id": mine.id}).items

    assert (checked[0], checked[1]["found"], checked[1]["items"]) == (4, {"copy": 3}, 0)
    [finding] = checked[1]["findings"]
    assert finding["where"] == f"incident.v1.Incident tenant_id={TENANT}, id={mine.id}"
    assert finding["detail"] == "copies: 3 missing"
    assert (mended[0], mended[1]["mended"], mended[1]["compared"]) == (0, {"copy": 3}, {"copies": 4})
    assert (right[0], right[1]["found"]) == (0, {})
    assert (orphans[0], orphans[1]["findings"][0]["detail"]) == (0, "copies: 3 too many")
    assert left == []


def test_a_repair_of_copies_lists_what_they_were_and_are(world: ReshardWorld) -> None:
    mine, copies = fire(world), ("incidents", TENANT, "--only", "copies", "--mend")

    def changes() -> dict[str, Any]:
        found: dict[str, Any] = report(world, *copies)[1]["findings"][0]["changes"]
        return found

    missing = changes()
    row = stored(world, typed("participation.v1.Participation"))
    put(world, {**row, "title": {"S": "Flood"}, "Rev": {"S": "wrong"}})
    wrong = changes()
    world.layer().collection(Incident).delete(mine)
    extra = changes()

    place = next(place for place in missing if row["SK"]["S"] in place)
    assert len(missing) == len(extra) == 3
    assert missing[place]["old"] is None
    assert missing[place]["new"]["M"].items() <= row.items()
    assert missing[place]["new"]["M"]["title"] == {"S": "Fire"}
    assert wrong == {place: {"old": {"M": {"title": {"S": "Flood"}}}, "new": {"M": {"title": {"S": "Fire"}}}}}
    assert extra[place] == {"old": missing[place]["new"], "new": None}


def test_what_is_on_its_way_to_copies_and_roll_ups_is_no_fault(world: ReshardWorld) -> None:
    mine, counted = fire(world), pings(world)
    # Each arrives when the first comparison has missed it: of roll-ups, at the hour after that of the items.
    late: dict[str, list[Callable[[], object]]] = {
        Part.COPIES: [lambda: PARTICIPATIONS.materializer(world.layer()).carry({"tenant_id": TENANT, "id": mine.id})],
        Part.ROLLUPS: [lambda: None, lambda: ItemCounter(world.layer(), PLAYS).count(counted)],
    }

    def arrive(report: Report) -> None:
        if report.compared.get(report.stage) and (left := late.get(report.stage)):
            left.pop(0)()

    declared = Declared([Incident, Participation, Ping], copies=[PARTICIPATIONS], roll_ups=[PLAYS])
    verifier = Verifier(world.layer(), world.topology_table, declared, advance=arrive)
    found = verifier.run(Task(parts=[Part.COPIES, Part.ROLLUPS]))

    assert (dict(found.found), [left for left in late.values() if left]) == ({}, [])


class Loose(Entity, name="incident.v1.Incident", key=Key("{tenant_id}", "{id}"), shards=Shards(4), registry=Registry()):
    """An incident with a number of another type than the domain declares."""

    tenant_id: str
    id: str = "loose"
    number: str = "one"
    title: str = "without a number"


def test_an_item_that_cannot_be_copied_is_named_and_all_others_are_repaired(world: ReshardWorld) -> None:
    world.layer().collection(Loose).create(Loose(tenant_id=TENANT))
    fire(world)

    mended = report(world, "incidents", TENANT, "--only", "copies", "--mend")
    checked = report(world, "incidents", TENANT, "--only", "copies")

    assert (mended[0], mended[1]["mended"]) == (3, {"copy": 3})
    assert (checked[0], checked[1]["found"]) == (3, {"uncopied": 1})
    assert checked[1]["findings"][0]["where"].endswith("id=loose")


def pings(world: ReshardWorld) -> list[Ping]:
    """Store pings that are not counted: ten minutes of one series, five of another."""
    made = [
        Ping(
            tenant_id=TENANT,
            series=series,
            episode="e1",
            at=YESTERDAY + timedelta(minutes=minute),
            id=f"{series}{minute}",
            session_id="s",
        )
        for series, minutes in (("dark", 10), ("fargo", 5))
        for minute in range(minutes)
    ]
    world.layer().collection(Ping).batch_write(put=made)
    return made


def test_roll_ups_of_a_day_are_compared_and_repaired_by_their_index(world: ReshardWorld) -> None:
    ItemCounter(world.layer(), PLAYS).count(pings(world)[1:])
    day = ("pings", TENANT, "--day", DAY)

    before, mended, after = report(world, *day), report(world, *day, "--mend"), report(world, *day)
    month = report(world, "pings", TENANT, "--month", DAY[:7])
    printed = world.run("verify", *day)

    assert (before[0], before[1]["found"], before[1]["items"]) == (4, {"roll_up": 3}, 0)
    by_place = {each["where"]: each for each in before[1]["findings"]}
    [found] = [each for where, each in by_place.items() if "level day" in where]
    assert "series dark" in found["where"]
    assert found["detail"] == "pings 9 instead of 10, seconds 540 instead of 600"
    assert found["changes"]["pings"] == {"old": {"N": "9"}, "new": {"N": "10"}}
    # The month of the day lacks the same ping.
    assert (mended[0], mended[1]["mended"]) == (0, {"roll_up": 4})
    assert (month[0], month[1]["found"]) == (0, {})
    assert (after[0], after[1]["found"], after[1]["compared"]) == (0, {}, {"rollups": 15})
    assert printed.out.startswith("15 items of roll-ups: 0 found wrong; ")


def test_roll_ups_of_a_month_are_made_of_items_alone(world: ReshardWorld) -> None:
    made = pings(world)

    status, _ = report(world, "pings", TENANT, "--month", f"{YESTERDAY:%Y-%m}", "--only", "rollups", "--mend")

    month = YESTERDAY.replace(day=1)
    rows = PLAYS.read(
        world.layer(), {"tenant_id": TENANT}, level="month", start=month, end=month + timedelta(days=1), consistent=True
    )
    assert status == 0
    assert {row.series: row.seconds for row in rows} == {"dark": 600, "fargo": 300}
    assert len(made) == 15


def ping(at: datetime, expires_at: datetime, episode: str = "e1") -> Ping:
    of = {"tenant_id": TENANT, "series": "dark", "episode": episode, "session_id": "s"}
    return Ping(**of, at=at, id=f"at-{at:%Y%m%d%H%M}", expires_at=expires_at)


def test_roll_ups_are_compared_from_the_first_item_on_in_whatever_order_items_are_read(world: ReshardWorld) -> None:
    ends = YESTERDAY + timedelta(days=80)
    made = [ping(YESTERDAY, ends, f"e{n}") for n in range(8)]
    world.layer().collection(Ping).batch_write(put=[*made, ping(YESTERDAY - timedelta(days=40), ends)])

    # A minute, an hour and a day of each, and two months.
    assert report(world, "--only", "rollups")[1]["found"] == {"roll_up": 9 * 3 + 2}


@pytest.mark.parametrize(
    ("left", "found"),
    [
        (timedelta(minutes=30), {}),
        (timedelta(hours=2), {"roll_up_above": 2}),
        (timedelta(days=2), {"roll_up_above": 3}),
        (timedelta(days=40), {"roll_up_above": 4}),
    ],
)
def test_only_spans_of_which_no_item_can_have_expired_are_compared(
    world: ReshardWorld, left: timedelta, found: dict[str, int]
) -> None:
    """What the rows of the minute, the hour, the day and the month count is no longer among the items."""
    ends = datetime.fromtimestamp(world.clock(), UTC) + left
    [kept, _] = both = [ping(YESTERDAY + timedelta(hours=3, minutes=n), ends) for n in range(2)]
    world.layer().collection(Ping).create(kept)
    ItemCounter(world.layer(), PLAYS).count(both)

    assert report(world, "--only", "rollups", "--strict")[1]["found"] == found


def test_an_item_that_is_brought_home_is_counted_in_the_same_run(world: ReshardWorld) -> None:
    ping = Ping(tenant_id=TENANT, series="dark", episode="e1", at=YESTERDAY, id="p", session_id="s")
    world.layer().collection(Ping).create(ping)
    row = stored(world, typed("ping.v1.Ping"))
    delete(world, row)
    partition, _, shard = row["PK"]["S"].rpartition(":")
    put(world, {**row, "PK": {"S": f"{partition}:{(int(shard) + 1) % 4}"}})

    mended, again = report(world, "--mend"), report(world)

    # A minute, an hour, a day and a month.
    assert (mended[0], mended[1]["mended"]) == (0, {"away": 1, "roll_up": 4})
    assert (again[0], again[1]["found"]) == (0, {})


def raise_a_row(world: ReshardWorld) -> None:
    """Make a row of a day count one ping more than its items."""
    row = stored(world, lambda each: typed("plays.v1.Episode")(each) and each["SK"]["S"].startswith("day"))
    put(world, {**row, "pings": {"N": str(int(row["pings"]["N"]) + 1)}, "Rev": {"S": "wrong"}})


@pytest.mark.parametrize("scope", [("pings", TENANT, "--day", DAY), ("--only", "rollups")])
def test_a_row_that_counts_more_than_its_items_is_right_unless_it_is_asked_for(
    world: ReshardWorld, scope: tuple[str, ...]
) -> None:
    ItemCounter(world.layer(), PLAYS).count(pings(world))
    raise_a_row(world)

    plain, strict = report(world, *scope, "--mend"), report(world, *scope, "--strict", "--mend")
    lowered, again = report(world, *scope, "--lower", "--mend"), report(world, *scope, "--strict")

    assert (plain[0], plain[1]["found"]) == (0, {})
    assert (strict[0], strict[1]["found"], strict[1]["mended"]) == (4, {"roll_up_above": 1}, {})
    assert (lowered[0], lowered[1]["mended"]) == (0, {"roll_up_above": 1})
    assert (again[0], again[1]["found"]) == (0, {})


def incident_writer(world: ReshardWorld, *, dying: bool = False) -> Dynashard:
    """Return a client with a clock of two days ago; a dying one is killed before an item points to its version."""
    return Dynashard(
        Dying(world.wire, before=2) if dying else world.wire,
        table=world.table,
        topology=DeclaredTopology(),
        cursor_keys=CURSOR_KEYS,
        runtime=Runtime(lambda: time.time() - 2 * DAYS),
    )


def test_only_old_versions_of_attachments_that_no_item_points_to_are_removed(world: ReshardWorld) -> None:
    incidents = incident_writer(world).collection(Incident)
    kept = incidents.create(Incident(tenant_id=TENANT, id="kept", number=1, title="Kept", details=[1]))
    with suppress(Killed):
        incident_writer(world, dying=True).collection(Incident).create(
            Incident(tenant_id=TENANT, id="lost", number=2, title="Lost", details=[2])
        )
    leftovers = ("--only", "leftovers")

    young = report(world, *leftovers, "--grace-hours", "72", "--mend")
    found = report(world, "incidents", *leftovers)
    mended, again = report(world, *leftovers, "--mend"), report(world, *leftovers)

    assert (young[0], young[1]["found"], young[1]["compared"]) == (0, {}, {"leftovers": 2})
    assert (found[0], found[1]["found"], found[1]["items"]) == (4, {"leftover": 1}, 0)
    assert (mended[0], mended[1]["mended"]) == (0, {"leftover": 1})
    [finding] = mended[1]["findings"]
    [(version, change)] = finding["changes"].items()
    assert finding["where"].endswith("/ lost")
    assert (change["old"]["M"]["SK"], change["old"]["M"]["Pieces"]) == ({"S": f"m#{version}"}, {"N": "1"})
    assert change["new"] is None
    assert (again[0], again[1]["compared"]) == (0, {"leftovers": 1})
    assert incidents.get(kept, include=["details"]).details == [1]


DAMAGED: Final = {
    "another key": {"Partition": {"S": "incident.v1.Incident:xyz"}},
    "an empty key": {"Sort": {"S": ""}},
    "no time": {"Since": None},
    "no number": {"Pieces": {"S": "x"}},
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_manifest_is_named_and_its_version_stays(world: ReshardWorld, damage: dict[str, Wire | None]) -> None:
    incidents = incident_writer(world).collection(Incident)
    kept = incidents.create(Incident(tenant_id=TENANT, id="kept", number=1, title="Kept", details=[1]))
    manifest = stored(world, lambda row: row["SK"]["S"].startswith("m#"))
    put(world, {name: value for name, value in {**manifest, **damage}.items() if value is not None})

    status, found = report(world, "--only", "leftovers", "--mend")

    assert (status, found["found"], found["mended"]) == (3, {"unreadable": 1}, {})
    assert found["findings"][0]["where"] == f"{manifest['PK']['S']} / {manifest['SK']['S']}"
    assert incidents.get(kept, include=["details"]).details == [1]


class LicensorWithContract(
    Entity, name="revenue.v1.Licensor", key=Key(partition="{tenant_id}", sort="{id}"), registry=Registry()
):
    """The entity of an earlier release, with an attachment that the present one does not declare."""

    tenant_id: str
    id: str
    name: str
    contract: Annotated[str | None, Attachment()] = None


def test_versions_of_an_attachment_that_is_not_declared_any_more_are_removed_if_no_item_points_to_them(
    world: ReshardWorld,
) -> None:
    former = incident_writer(world).collection(LicensorWithContract)
    for each in ("kept", "gone"):
        former.create(tenant_id=TENANT, id=each, name="Studio", contract=each)
    present = world.layer().collection(Licensor)
    present.update({"tenant_id": TENANT, "id": "kept"}, set={"name": "Studio A"})
    present.delete({"tenant_id": TENANT, "id": "gone"})

    reservation = "revenue.v1.Licensor~unique~name"
    put(world, {"PK": {"S": f"{reservation}:abc:x"}, "SK": {"S": "reservation"}, "Type": {"S": reservation}})

    found = report(world)
    mended, again = report(world, "--mend"), report(world)

    # Nothing else of fields that are not declared is judged.
    assert (found[0], found[1]["found"], found[1]["others"]) == (4, {"leftover": 1}, 1)
    assert (mended[0], mended[1]["mended"]) == (0, {"leftover": 1})
    assert (again[0], again[1]["found"]) == (0, {})
    kept = former.get({"tenant_id": TENANT, "id": "kept"}, include=("contract",))
    assert (kept.name, kept.contract) == ("Studio A", "kept")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "copies,everything"], "--only has 'everything'; it must be some of items, index, copies, edges"),
        (["users", "--only", "items,copies"], "users has no copies to verify. Entities with some: incidents, partic"),
        (["incidents", "abc", "--only", "leftovers"], "leftovers of incidents cannot be verified for one partition"),
        (
            ["participations", "a:b", "--only", "copies"],
            "copies of participations cannot be verified for one partition",
        ),
        (["--day", DAY], "--day and --month compare the roll-ups of one entity: name one of pings"),
        (["users", "abc", "--day", DAY], "--day and --month compare the roll-ups of one entity: name one of pings"),
        (["pings", "--day", DAY], "compare the roll-ups of one tenant_id: name it after pings"),
        (["pings", "abc", "--day", DAY, "--only", "items"], "--day and --month compare roll-ups alone"),
        (["pings", "abc", "--day", DAY, "--month", DAY[:7]], "give --day or --month, not both"),
        (["pings", "abc", "--day", "yesterday"], "--day is 'yesterday'; write it like 2026-11-20"),
        (["pings", "a:b", "--day", DAY], "compare of pings has the form tenant_id, but 'a:b' has 2 parts"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(world: ReshardWorld, arguments: list[str], said: str) -> None:
    outcome = world.run("verify", *arguments)

    assert (outcome.status, outcome.out) == (1, "")
    assert said in outcome.err
    assert outcome.err.count("\n") == 1
