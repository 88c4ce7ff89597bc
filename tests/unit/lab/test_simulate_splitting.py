"""Where partitions are split, and where they are not."""

from random import Random

import pytest

from dynashard_lab.plan.partitions import expected_occupied
from dynashard_lab.simulate.partitions import Partitions, hash_of
from dynashard_lab.simulate.settings import Settings
from dynashard_lab.simulate.splitting import Position, Sample, is_ordered, split_point

pytestmark = pytest.mark.unit


def point(samples: list[Sample], *, within: bool = True) -> Position | None:
    return split_point(samples, least_share=0.1, rising_share=0.9, within_collections=within)


def traffic(sorts: list[str], hashed: int = 7) -> list[Sample]:
    return [Sample(at, hashed, sort, 1) for at, sort in enumerate(sorts)]


def random_sorts(count: int) -> list[str]:
    draw = Random(3)
    return [f"{draw.getrandbits(32):08x}" for _ in range(count)]


def test_traffic_of_two_keys_is_parted_between_them() -> None:
    samples = [Sample(at, 5 if at % 2 else 9, f"{at:04d}", 1) for at in range(40)]

    assert point(samples) == (9, "")


def test_a_hot_key_among_others_is_isolated() -> None:
    samples = [Sample(at, hashed, f"{at:04d}", 100 if hashed == 5 else 40) for at in range(20) for hashed in (5, 6, 8)]

    assert point(samples) == (6, "")


def test_random_sort_keys_of_one_hot_key_are_parted_in_the_middle() -> None:
    samples = traffic(random_sorts(200))

    found = point(samples)

    assert found is not None
    assert sum(sample[1:3] < found for sample in samples) == 100


@pytest.mark.parametrize("falling", [False, True])
def test_rising_and_falling_sort_keys_are_not_parted(*, falling: bool) -> None:
    sorts = [f"{at:08d}" for at in range(200)]

    assert point(traffic(sorts[::-1] if falling else sorts)) is None


def test_with_a_local_index_a_collection_is_not_parted() -> None:
    assert point(traffic(random_sorts(200)), within=False) is None


def test_one_hot_item_cannot_be_parted() -> None:
    assert point(traffic(["same"] * 200)) is None


def test_sort_keys_of_several_writers_with_one_clock_rise() -> None:
    draw = Random(5)
    sorts = [f"{at + draw.randint(0, 20):08d}" for at in range(200)]

    assert is_ordered(sorts, 0.9)
    assert not is_ordered(random_sorts(200), 0.9)


def test_ranges_cover_the_key_space_and_each_key_has_one_partition() -> None:
    partitions = Partitions(4, Settings())

    partitions.grow(7, 0.0)
    found = [partitions.find(f"key{number}", "") for number in range(500)]

    assert len(partitions) == 7
    assert all(partition.start <= (hash_of(f"key{number}"), "") for number, partition in enumerate(found))
    assert {id(partition) for partition in found} == {id(partition) for partition in partitions}


def test_a_partition_splits_at_its_size_even_if_sort_keys_rise() -> None:
    settings = Settings(partition_bytes=256_000)
    partitions = Partitions(1, settings)

    for number in range(600):
        partition = partitions.find("one key", f"{number:06d}")
        partition.bytes += 1_000
        if partition.bytes >= partition.sample_bytes:
            partitions.written(partition, float(number), "one key", f"{number:06d}", 1_000)

    assert partitions.size_splits == len(partitions) - 1 >= 2
    assert all(partition.bytes <= settings.partition_bytes for partition in partitions)
    assert sum(partition.bytes for partition in partitions) == pytest.approx(600_000)


def test_balls_in_bins_keys_meet_on_partitions_as_often_as_chance_says() -> None:
    settings, bins, balls, rounds = Settings(), 40, 64, 60
    distinct = 0

    for number in range(rounds):
        partitions = Partitions(bins, settings)
        distinct += len({id(partitions.find(f"tenant{number}:{shard}", "")) for shard in range(balls)})

    # The planner's closed form, 40 (1 - (39/40)^64) = 32.1: pre-warming alone does not give 64 shards 40 partitions.
    assert distinct / rounds == pytest.approx(expected_occupied(balls, bins), rel=0.03)
