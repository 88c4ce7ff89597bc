"""The planner's arithmetic gives the figures of the articles that this project is built from."""

import pytest

from dynashard.schema import MAX_ITEM_BYTES
from dynashard_lab.plan.inputs import PRICES, json_object
from dynashard_lab.plan.limits import (
    NEW_TABLE_READ_UNITS,
    NEW_TABLE_WRITE_UNITS,
    PARTITION_BYTES,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    READ_UNIT_BYTES,
    TABLE_QUOTA_UNITS,
    WRITE_UNIT_BYTES,
)
from dynashard_lab.plan.listing import high_watermark_units, page_cost
from dynashard_lab.plan.loading import Target, load_time, seconds_at
from dynashard_lab.plan.partitions import even_share, on_demand_partitions, provisioned_partitions
from dynashard_lab.plan.prices import prices_of
from dynashard_lab.plan.shards import shard_count
from dynashard_lab.plan.units import Consistency, index_write_units, read_units, write_units

pytestmark = pytest.mark.unit

KB = 1024
STRONG = Consistency.STRONG
USERS = Target("the table", write_units(KB), 1)
US = prices_of(json_object(PRICES.read_bytes()), "us-east-1")

FIGURES = [
    # ConductorOne
    (
        "a million 1 KB users at 1,000 units/s take 16.7 minutes",
        load_time(10**6, [USERS]).naive / 60,
        pytest.approx(16.7, abs=0.04),
    ),
    ("3,000 units a second are 180,000 a minute", PARTITION_READ_UNITS * 60, 180_000),
    ("an item of 5 KB costs 2 units to read", read_units(5 * KB, STRONG), 2),
    ("an item of 8 KB costs 2 units to read", read_units(8 * KB, STRONG), 2),
    ("an item of 400 KB costs 100 units to read", read_units(400 * KB, STRONG), 100),
    (
        "large items are written at a twelfth of the speed at which they are read",
        (PARTITION_READ_UNITS * READ_UNIT_BYTES) / (PARTITION_WRITE_UNITS * WRITE_UNIT_BYTES),
        12,
    ),
    ("a table serves 40,000 units by default", TABLE_QUOTA_UNITS, 40_000),
    (
        "the 40,000 units of a table need 64 shards of one partition, as a power of two",
        shard_count(40_000, lambda _: 0.0, fill=1, powers=True, rising=True).count,
        64,
    ),
    (
        "the watermark algorithm reads shards x page items",
        high_watermark_units(items=50, item_bytes=KB, shards=16),
        104,
    ),
    (
        "a round-robin page reads one page from one shard",
        page_cost("round_robin", items=50, item_bytes=KB, shards=64).queries,
        1,
    ),
    # Codeship
    ("3,000 and 1,000 units are 2 partitions", provisioned_partitions(3000, 1000), 2),
    ("1,500 and 500 units are 1 partition", provisioned_partitions(1500, 500), 1),
    ("2,500 and 1,000 units are 2 partitions (1.83)", provisioned_partitions(2500, 1000), 2),
    ("of 2,500 read units each of 2 partitions has 1,250", even_share(2500, 2), 1250),
    ("of 1,000 write units each of 2 partitions has 500", even_share(1000, 2), 500),
    ("150 units over three partitions are 50 each", even_share(150, 3), 50),
    ("one hot partition of three leaves two thirds unused", 1 - even_share(150, 3) / 150, pytest.approx(2 / 3)),
    ("10 GB hold over 25,000 items of 400 KB", PARTITION_BYTES // MAX_ITEM_BYTES > 25_000, True),
    ("over 10 GB a partition splits into two", provisioned_partitions(1500, 500, PARTITION_BYTES + 1), 2),
    # 0x74696d
    ("ten instances and a hot day-key give a tenth of the throughput", even_share(500, 10) / 500, pytest.approx(0.1)),
    ("a unit is 1 consistent read of 4 KB", read_units(4 * KB, STRONG), 1),
    ("a unit is 2 eventually consistent reads of 4 KB", read_units(4 * KB) * 2, 1),
    ("a write unit is for 1 KB", write_units(KB), 1),
    ("writes are at least 5 times as expensive as reads", US.write_unit_hour / US.read_unit_hour >= 5 - 1e-9, True),
    ("an index doubles the cost of a write", write_units(KB) + index_write_units(KB, before=None), 2 * write_units(KB)),
    # Ready Five
    ("2 KB items give 500 writes/s", PARTITION_WRITE_UNITS / write_units(2 * KB), 500),
    ("a new on-demand table has 4 partitions", on_demand_partitions(NEW_TABLE_READ_UNITS, NEW_TABLE_WRITE_UNITS), 4),
    ("4 partitions serve 12,000 reads", 4 * PARTITION_READ_UNITS, NEW_TABLE_READ_UNITS),
    ("4 partitions serve 4,000 writes", 4 * PARTITION_WRITE_UNITS, NEW_TABLE_WRITE_UNITS),
    ("100,000 provisioned write units give about 100 partitions", provisioned_partitions(0, 100_000), 100),
    (
        "three incidents of 300 KB fill a Query of 1 MB",
        page_cost("shard", items=3, item_bytes=300 * KB, shards=1).queries,
        1,
    ),
    ("a fourth needs another Query", page_cost("shard", items=4, item_bytes=300 * KB, shards=1).queries, 2),
    # AWS, choosing the right number of shards
    (
        "ten shards by modulo are ten, not sixteen",
        shard_count(10_000, lambda _: 0.0, fill=1, powers=False, rising=True).count,
        10,
    ),
]


@pytest.mark.parametrize(("computed", "published"), [row[1:] for row in FIGURES], ids=[row[0] for row in FIGURES])
def test_the_planner_gives_the_figure_of_the_article(computed: float, published: float) -> None:
    assert computed == published


def test_shards_on_a_warm_table_load_a_million_users_in_about_half_a_minute() -> None:
    found = load_time(10**6, [Target("the table", 1, 64)], warm_units=40_000)

    assert found.naive == 1000
    assert seconds_at(10**6, 40_000) == 25
    assert 25 < found.warm < 35
