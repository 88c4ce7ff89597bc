"""What a table costs in a month, on demand and provisioned."""

from dataclasses import dataclass
from math import ceil

from dynashard_lab.plan.limits import GIGABYTE, ITEM_OVERHEAD_BYTES, MONTH_HOURS
from dynashard_lab.plan.prices import Prices

_MILLION = 1_000_000
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Load:
    """Units a second of a table with its indexes at the peak, and the mean as a part of the peak."""

    write_units: float
    read_units: float
    mean: float


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """US dollars a month.

    Attributes:
        on_demand: requests at the mean load.
        provisioned_flat: capacity for the peak at the target utilisation, day and night.
        provisioned_scaled: the same if capacity follows the load at every moment: the least that auto scaling or a
            schedule can reach.
        storage: items and index entries; the same in each mode.
        break_even: the mean load, as a part of the peak, below which on demand costs less than flat capacity; 1 or more
            if it always does.
    """

    on_demand: float
    provisioned_flat: float
    provisioned_scaled: float
    storage: float
    break_even: float

    @property
    def cheapest(self) -> str:
        """The cheaper mode of the two that need no further setting up."""
        return "on demand" if self.on_demand <= self.provisioned_flat else "provisioned"


def monthly_cost(load: Load, stored_bytes: float, prices: Prices, *, utilization: float) -> MonthlyCost:
    """Return the cost of a month of 730 hours, without free tier, backups, streams and transfer.

    `utilization` is the part of the provisioned capacity that the load uses, above 0 and at most 1.
    """
    always = on_demand_dollars(load.write_units, load.read_units, prices)
    writes, reads = (provisioned_units(units, utilization) for units in (load.write_units, load.read_units))
    peak = provisioned_dollars(writes, reads, prices)
    scaled = peak * load.mean
    return MonthlyCost(
        on_demand=always * load.mean,
        provisioned_flat=peak,
        provisioned_scaled=scaled,
        storage=stored_bytes / GIGABYTE * prices.storage_gb_month,
        break_even=peak / always if always else 0.0,
    )


def provisioned_units(units: float, utilization: float) -> int:
    """Return the whole units to provision so that `units` are a part `utilization` of them."""
    # Rounded first, because 700 / 0.7 is a little more than 1,000 in floating point.
    return ceil(round(units / utilization, 6))


def on_demand_dollars(write_units: float, read_units: float, prices: Prices) -> float:
    """Return the cost of units a second, through a month, on demand."""
    seconds = MONTH_HOURS * _HOUR
    writes = write_units * seconds / _MILLION * prices.write_request_million
    return writes + read_units * seconds / _MILLION * prices.read_request_million


def provisioned_dollars(write_units: float, read_units: float, prices: Prices) -> float:
    """Return the cost of provisioned units through a month."""
    return MONTH_HOURS * (write_units * prices.write_unit_hour + read_units * prices.read_unit_hour)


def stored_bytes(items: int, item_bytes: float) -> float:
    """Return the bytes billed for items, with the overhead of each."""
    return items * (item_bytes + ITEM_OVERHEAD_BYTES)
