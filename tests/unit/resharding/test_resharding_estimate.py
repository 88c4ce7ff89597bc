"""What a resize takes, by how much is stored and what the mover may take."""

import pytest

from dynashard.resharding.estimate import EffortInputs, Sample, Stored, estimate, lasting, stored_from
from dynashard.resharding.progress import Pass
from dynashard.resharding.rates import Course
from dynashard.resharding.share import Share

pytestmark = pytest.mark.unit

KB = 900.0
DOUBLED = Course(4, 8, workers=4)


def test_half_of_640000_items_move_when_4_shards_become_8() -> None:
    found = estimate(EffortInputs(DOUBLED, 4, waits=315.0), Stored(640_000, 640_000 * KB), Share())

    assert (found.items, found.write_units) == (320_000, 1_600_000)
    # 80,000 items of each shard: 100 moved and 200 swept a second, and three reads at 600 units a second.
    assert found.seconds == round(315 + 800 + 400 + 3 * 160_000 * KB / 4096 / 600, 1)
    assert found.dollars == pytest.approx(1.6 * 0.625 + 3 * 640_000 * KB / 4096 * 0.125e-6, abs=0.01)
    assert found.text.startswith("moves 320,000 items, consumes 1,600,000 write and ")
    assert found.text.endswith("takes about 29 minutes at 20% of what a shard gives")


def test_a_million_items_of_one_shard_take_more_than_two_hours() -> None:
    found = estimate(EffortInputs(Course(1, 2, workers=1), 1), Stored(1_000_000, 1_000_000 * KB), Share())

    assert 2 * 3600 < found.seconds < 2.5 * 3600


def test_a_shard_gives_1000_write_and_3000_read_units_a_second() -> None:
    half = Share(0.5)

    assert (half.writes, half.reads) == (500.0, 1500.0)


def test_a_larger_share_takes_less_time_and_the_same_units() -> None:
    resize, stored = EffortInputs(DOUBLED, 4), Stored(640_000, 640_000 * KB)

    fifth, half = (estimate(resize, stored, Share(part)) for part in (0.2, 0.5))

    assert fifth.seconds == pytest.approx(2.5 * half.seconds, rel=0.01)
    assert (fifth.write_units, fifth.dollars) == (half.write_units, half.dollars)


def test_a_budget_below_the_share_bounds_all_tasks_together() -> None:
    stored = Stored(640_000, 640_000 * KB)

    bounded = estimate(EffortInputs(Course(4, 8, workers=4, budget=160.0), 4), stored, Share())

    assert bounded.seconds == pytest.approx(1_600_000 / 160, rel=0.1)


def test_items_that_callers_create_during_the_waits_move_too() -> None:
    """Four full shards take 4,000 items a second, half of which have another home."""
    creating = EffortInputs(DOUBLED, 4, creating=0.5, creating_seconds=100.0)

    found = estimate(creating, Stored(), Share())

    assert found.items == 4 * 1000 * 0.5 * 100 / 2


def test_the_larger_items_are_the_fewer_callers_can_create() -> None:
    creating = EffortInputs(DOUBLED, 4, creating=0.5, creating_seconds=100.0)

    found = estimate(creating, Stored(10, 10 * 2.5 * 1024), Share())

    assert found.items == round((10 + 4 * 1000 * 0.5 * 100 / 3) / 2)


def test_entries_in_indexes_take_as_many_units_as_the_item() -> None:
    stored = Stored(1000, 1000 * KB)

    plain, indexed = (estimate(EffortInputs(DOUBLED, 4, entries=entries), stored, Share()) for entries in (0, 2))

    assert indexed.write_units == 3 * plain.write_units


@pytest.mark.parametrize(("origin", "target", "shards", "moved"), [(8, 4, 4, 1000), (0, 4, 1, 1000), (1, 4, 1, 750)])
def test_a_smaller_count_moves_all_of_the_removed_shards(origin: int, target: int, shards: int, moved: int) -> None:
    found = estimate(EffortInputs(Course(origin, target, workers=4), shards), Stored(1000, 1000 * KB), Share())

    assert found.items == moved


def test_without_moves_a_resize_takes_its_waits() -> None:
    found = estimate(EffortInputs(Course(4, 8, 1), 0, waits=122.0), Stored(), Share())

    assert (found.seconds, found.write_units, found.dollars) == (122.0, 0, 0.0)
    assert found.text == "moves no items, and takes about 3 minutes"


def test_a_description_without_items_does_not_say_that_nothing_moves() -> None:
    found = estimate(EffortInputs(Course(4, 8, 1), 16, waits=20.0), Stored(most=0), Share())

    assert found.text == "moves items that DynamoDB has not counted yet, and takes at least 20 seconds"


def test_tasks_that_write_to_one_remaining_shard_divide_its_share() -> None:
    one, three = Course(8, 4, workers=8).rate(Pass.MOVE, Share()), Course(8, 2, workers=8).rate(Pass.MOVE, Share())

    assert (one.writes, three.writes) == (400.0, 400.0 / 3)


def test_entries_of_one_index_partition_share_its_shards() -> None:
    rate = Course(2, 4, workers=8, rewrites=True).rate(Pass.MOVE, Share())

    assert 8 * rate.writes == 2 * 200.0


def test_counted_shards_stand_for_the_others() -> None:
    found = stored_from([Sample(10_000, 10_000 * KB, complete=True)], 4)

    assert (found.items, found.bytes) == (40_000, 40_000 * KB)
    assert found.error == pytest.approx(2 * (40_000 * 3) ** 0.5, abs=1)


def test_a_count_that_was_cut_short_is_a_lower_bound() -> None:
    stored = stored_from([Sample(60_000, 60_000 * KB, complete=False)], 4, most=2_000_000)

    found = estimate(EffortInputs(DOUBLED, 4), stored, Share())

    assert (stored.items, stored.error, found.items, found.most) == (240_000, None, 120_000, 1_000_000)
    assert "moves at least 120,000 items and at most 1,000,000, " in found.text
    assert "takes at least" in found.text


def test_a_complete_count_is_preferred_to_one_that_was_cut_short() -> None:
    found = stored_from([Sample(100, 1e5, complete=True), Sample(5, 1e3, complete=False)], 4)

    assert found.items == 400


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 second"), (89.0, "89 seconds"), (1800.0, "30 minutes"), (8100.0, "2.2 hours")]
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert lasting(seconds) == text
