"""DynamoDB's prices in one region."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from math import isfinite
from typing import Any, Final

REFERENCE: Final = "us-east-1"
"""The region in proportion to which missing prices of other regions are estimated."""
PROVISIONED: Final = ("write_unit_hour", "read_unit_hour")
OTHERS: Final = ("write_request_million", "read_request_million", "storage_gb_month")
NAMES: Final = (*PROVISIONED, *OTHERS)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of the standard table class in US dollars.

    Attributes:
        as_of: when they were read.
        estimated: the prices that are in proportion to another region's.
        write_unit_hour, read_unit_hour: a provisioned unit for an hour.
        write_request_million, read_request_million: a million units on demand.
        storage_gb_month: a GB of storage for a month.
    """

    region: str
    as_of: str
    write_unit_hour: float
    read_unit_hour: float
    write_request_million: float
    read_request_million: float
    storage_gb_month: float
    estimated: tuple[str, ...] = ()


def prices_of(document: Mapping[str, Any], region: str, overrides: Mapping[str, float] | None = None) -> Prices:
    """Return the prices of a region from a document like `prices.json`, with single prices replaced by `overrides`.

    Raises:
        ValueError: the document is malformed, the region is not in it, or a price is not a positive number.
    """
    as_of, regions = _as_of(document), document.get("regions")
    if not isinstance(regions, Mapping) or not regions:
        raise ValueError("prices have no regions")
    if region not in regions:
        known = ", ".join(sorted(regions))
        raise ValueError(f"there are no prices for {region!r}; there are some for {known}. Give others with --prices")
    own = _checked(regions[region], region)
    missing = tuple(name for name in OTHERS if name not in own)
    if missing:
        own |= _in_proportion(own, regions, region, missing)
    found = Prices(region, as_of, **own, estimated=missing)
    return _overridden(found, overrides or {})


def _as_of(document: Mapping[str, Any]) -> str:
    text = document.get("as_of")
    try:
        return date.fromisoformat(text if isinstance(text, str) else "").isoformat()
    except ValueError:
        raise ValueError(f"as_of of the prices is {text!r}; it must be a date, such as 2026-11-22") from None


def _checked(row: Any, region: str) -> dict[str, float]:
    if not isinstance(row, Mapping):
        raise ValueError(f"the prices of {region} are not an object")  # noqa: TRY004 - wrong input, not a wrong call
    for name, price in row.items():
        if name not in NAMES:
            raise ValueError(f"{region} has a price {name!r}; the names are {', '.join(NAMES)}")
        _require_positive(name, price)
    for name in PROVISIONED:
        if name not in row:
            raise ValueError(f"the prices of {region} lack {name}")
    return {name: float(price) for name, price in row.items()}


def _in_proportion(
    own: Mapping[str, float], regions: Mapping[str, Any], region: str, missing: tuple[str, ...]
) -> dict[str, float]:
    reference = _checked(regions[REFERENCE], REFERENCE) if REFERENCE in regions and region != REFERENCE else {}
    for name in missing:
        if name not in reference:
            raise ValueError(f"the prices of {region} lack {name}, and {REFERENCE} has none to estimate it from")
    factor = own["write_unit_hour"] / reference["write_unit_hour"]
    return {name: reference[name] * factor for name in missing}


def _overridden(found: Prices, overrides: Mapping[str, float]) -> Prices:
    for name, price in overrides.items():
        if name not in NAMES:
            raise ValueError(f"there is no price {name!r}; the names are {', '.join(NAMES)}")
        _require_positive(name, price)
    estimated = tuple(name for name in found.estimated if name not in overrides)
    changes: dict[str, Any] = dict(overrides)
    return replace(found, **changes, estimated=estimated)


def _require_positive(name: str, price: Any) -> None:
    number = isinstance(price, int | float) and not isinstance(price, bool)
    if not number or not isfinite(price) or price <= 0:
        raise ValueError(f"{name} is {price!r}; it must be a number above 0")
