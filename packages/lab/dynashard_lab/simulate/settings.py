"""The assumptions of the model: one named value each."""

from dataclasses import dataclass
from typing import Literal

from dynashard_lab.plan.limits import (
    DOUBLING_SECONDS,
    NEW_TABLE_READ_UNITS,
    NEW_TABLE_WRITE_UNITS,
    PARTITION_BYTES,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    PEAK_FACTOR,
    TABLE_QUOTA_UNITS,
    TRANSACTION_FACTOR,
)

Limit = Literal["KeyRangeThroughput", "ProvisionedThroughput", "AccountLimit", "MaxOnDemandThroughput"]
"""What a throttle limits, as DynamoDB writes it in its reasons."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the model assumes about DynamoDB. Units are capacity units, times are seconds.

    "Guide" is the DynamoDB developer guide. "Heat" is the AWS blog's series "Scaling DynamoDB: How partitions, hot
    keys, and split for heat impact performance". "Ours" is a choice that no public source decides.

    Attributes:
        partition_write_units: what a partition writes in a second. Source: Guide, "Best practices for designing and
            using partition keys effectively".
        partition_read_units: what a partition reads in a second. Source: the same page.
        partition_bytes: the size at which a partition splits. Source: Heat, part 3.
        limit_burst_seconds: for how long a partition, an on-demand ceiling and a quota save unused units. A partition
            never exceeds its limit for longer. Source: Ours; the Guide caps a partition at its limit even in a burst.
        burst_seconds: for how long provisioned throughput saves unused units. Source: Guide, "DynamoDB burst and
            adaptive capacity".
        burst_at_start: the share of that burst which a provisioned table has saved when a run starts. Source: Ours; the
            worst case.
        heat_split_seconds: how long a partition is throttled before it is split. Source: Ours; Heat, part 2, measures a
            hot key over its first 10 minutes, and the Guide promises no time.
        heat_pause_seconds: the time without a throttle after which a partition is no longer hot. Source: Ours.
        heat_least_share: the least share of the traffic that each half gets, else a split would not help. Source: Ours.
        rising_share: the share of newer sort keys beyond the median of the older ones from which traffic counts as
            rising or falling. Such an item collection is not split for heat. The rule's source: Guide, "DynamoDB burst
            and adaptive capacity", and Heat, part 3; the value: Ours.
        on_demand_write_units: what a new on-demand table or index writes in a second. Source: Guide, "DynamoDB
            on-demand capacity mode".
        on_demand_read_units: what it reads in a second. Source: the same page.
        on_demand_growth: the multiple of its previous peak that an on-demand table sustains. Source: the same page.
        on_demand_growth_seconds: how old a peak must be to count as previous. Source: the same page.
        ceiling_limit: the limit that a throttle above the on-demand ceiling names. Source: Ours; of the four limits
            that DynamoDB names, the Guide ascribes no other to a table that has not scaled yet.
        table_write_quota: the account's quota of write units for one on-demand table. Source: Guide, "Quotas".
        table_read_quota: its quota of read units. Source: the same page.
        transaction_factor: the units of a transactional access, relative to an ordinary one. Source: Guide, "Managing
            complex workflows with DynamoDB transactions".
        review_seconds: how often consumption is averaged for peaks and for target tracking. Source: CloudWatch's
            metrics of DynamoDB have a point a minute.
        scale_out_seconds: how long consumption is above the target before capacity is raised. Source: AWS re:Post,
            "Why isn't DynamoDB auto scaling working as expected?".
        scale_in_seconds: how long consumption is far below the target before capacity is lowered. Source: the same.
        scale_in_margin: how far below the target that is, as a share of it. Source: the same.
        update_seconds: how long a change of capacity takes once it has begun. Source: Ours; the Guide speaks of
            minutes.
        free_decreases: how often a day capacity may be lowered freely. Source: Guide, "Quotas".
        decrease_pause_seconds: the least time since the last decrease for each further one. Source: the same page.
        on_demand_write_price: US dollars for a million write units on demand. Source: AWS's price list of us-east-1,
            standard class, as of November 2024.
        on_demand_read_price: for a million read units. Source: the same list.
        provisioned_write_price: US dollars for a provisioned write unit and hour. Source: the same list.
        provisioned_read_price: for a provisioned read unit and hour. Source: the same list.
        seed: of the model's own random choices: which throttled keys are sampled. Source: Ours.
    """

    partition_write_units: float = PARTITION_WRITE_UNITS
    partition_read_units: float = PARTITION_READ_UNITS
    partition_bytes: int = PARTITION_BYTES
    limit_burst_seconds: float = 1.0
    burst_seconds: float = 300.0
    burst_at_start: float = 0.0
    heat_split_seconds: float = 600.0
    heat_pause_seconds: float = 60.0
    heat_least_share: float = 0.1
    rising_share: float = 0.9
    on_demand_write_units: float = NEW_TABLE_WRITE_UNITS
    on_demand_read_units: float = NEW_TABLE_READ_UNITS
    on_demand_growth: float = PEAK_FACTOR
    on_demand_growth_seconds: float = DOUBLING_SECONDS
    ceiling_limit: Limit = "KeyRangeThroughput"
    table_write_quota: float = TABLE_QUOTA_UNITS
    table_read_quota: float = TABLE_QUOTA_UNITS
    transaction_factor: float = TRANSACTION_FACTOR
    review_seconds: float = 60.0
    scale_out_seconds: float = 120.0
    scale_in_seconds: float = 900.0
    scale_in_margin: float = 0.2
    update_seconds: float = 120.0
    free_decreases: int = 4
    decrease_pause_seconds: float = 3_600.0
    on_demand_write_price: float = 0.625
    on_demand_read_price: float = 0.125
    provisioned_write_price: float = 0.00065
    provisioned_read_price: float = 0.00013
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("partition_write_units", "partition_read_units", "partition_bytes", "review_seconds"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
