"""`dynashard verify --only counters`: parts that disagree are reported, and nothing is changed."""

from typing import Final

import pytest

from domain.samples.seats import Seats
from dynashard.placement import PART_DIGITS
from dynashard.transport.interface import Wire
from dynashard_patterns import CounterStore
from tests.engine.tools.reshard_world import ReshardWorld
from tests.engine.tools.verify_world import TENANT, put, report, stored, typed

pytestmark = pytest.mark.engine

KEY: Final = {"tenant_id": TENANT, "screening": "premiere"}
COUNTERS: Final = ("seats", f"{TENANT}:premiere", "--only", "counters")


def seats(world: ReshardWorld) -> CounterStore[Seats]:
    """Return counters of which one has been changed at every part."""
    counters = CounterStore.on(world.layer(), Seats)
    for _ in range(60):
        counters.add(KEY, 3)
    counters.take(KEY, 150)
    return counters


def change(world: ReshardWorld, part: int, **numbers: int) -> None:
    """Write numbers of a part as another program does."""
    item = stored(
        world, lambda each: typed("screening.v1.Seats")(each) and each["SK"]["S"] == f"{part:0{PART_DIGITS}d}"
    )
    put(world, {**item, **{name: {"N": str(number)} for name, number in numbers.items()}})


def details(world: ReshardWorld, *arguments: str) -> tuple[int, list[str]]:
    """Return the exit status and what was found."""
    status, said = report(world, *(arguments or COUNTERS))
    return status, [f"{each['kind']}: {each['detail'].partition(':')[0]}" for each in said["findings"]]


def test_a_counter_that_was_only_changed_by_the_layer_is_right(world: ReshardWorld) -> None:
    seats(world)

    status, said = report(world, "--only", "counters")

    assert (status, said["found"], said["compared"]) == (0, {}, {"counters": 1})


def test_numbers_that_do_not_add_up_are_found_and_left_alone(world: ReshardWorld) -> None:
    counters = seats(world)
    value, spare = (counters.parts(KEY).numbers(side)[2] for side in ("value", "spare"))
    change(world, 2, value=value + 7)

    checked, mended = details(world), details(world, *COUNTERS, "--mend")

    assert checked == mended == (4, ["counter: value and spare of all parts add up to +7, not 0"])
    assert [counters.parts(KEY).numbers(side)[2] for side in ("value", "spare")] == [value + 7, spare]


def test_a_part_below_its_least_is_found(world: ReshardWorld) -> None:
    counters = seats(world)
    found = counters.parts(KEY)
    value, spare = (found.numbers(side)[1] for side in ("value", "spare"))
    change(world, 1, value=-5, spare=spare + value + 5)

    assert details(world) == (4, ["counter: the value of part 1 is -5, 5 below its least"])


def test_a_part_that_no_reader_looks_at_is_found(world: ReshardWorld) -> None:
    seats(world)
    item = stored(world, lambda each: typed("screening.v1.Seats")(each) and each["SK"]["S"] == f"{3:0{PART_DIGITS}d}")
    partition = item["PK"]["S"].rpartition(":")[0]
    put(world, {**item, "PK": {"S": f"{partition}:9"}, "SK": {"S": f"{9:0{PART_DIGITS}d}"}, "part": {"N": "9"}})

    status, found = details(world, "--only", "counters")

    assert (status, found) == (4, ["counter: it has 4 parts, so part 9 is never read"])


DAMAGED: Final = {
    "number": {"value": {"S": "many"}},
    "newer version": {"Ver": {"N": "7"}},
    "marker": {"MovedTo": {"S": "x"}},
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_part_that_does_not_fit_is_named_and_the_other_counters_are_compared(
    world: ReshardWorld, damage: dict[str, Wire]
) -> None:
    counters = seats(world)
    matinee = {**KEY, "screening": "matinee"}
    for _ in range(20):
        counters.add(matinee, 3)
    chosen = [
        stored(world, lambda each, name=name: each.get("screening", {}).get("S") == name)  # type: ignore[misc]
        for name in ("matinee", "premiere")
    ]
    put(world, {**chosen[0], **damage})
    put(world, {**chosen[1], "value": {"N": str(int(chosen[1]["value"]["N"]) + 9)}})

    status, found = details(world, "--only", "counters")

    assert status == 4
    assert found[0].startswith(("unreadable: ", "damaged_marker: "))
    assert found[1:] == ["counter: value and spare of all parts add up to +9, not 0"]
