"""The shares of licensors in a month's revenue."""

from collections import defaultdict
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Final

from pydantic import BaseModel, Field

from domain.samples.pings import Name
from domain.samples.plays import PLAYS
from dynashard import Dynashard, Entity, Key, new_id
from dynashard_patterns import Level, divide
from dynashard_serving.declare import Access, endpoint, serve

ACCESS: Final = Access(read="revenue:read", write="revenue:write")
Month = Annotated[str, Field(pattern=r"^2[01][0-9]{2}-(0[1-9]|1[0-2])$")]


@serve(path="licensors", tag="revenue", access=ACCESS)
class Licensor(Entity, name="revenue.v1.Licensor", key=Key(partition="{tenant_id}", sort="{id}")):
    """A licensor, who gets a part of the revenue of their series."""

    tenant_id: str
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")] = new_id()
    name: Annotated[str, Field(min_length=1, max_length=200)]


@serve(path="licences", filters=("licensor_id",), tag="revenue", access=ACCESS)
class Licence(Entity, name="revenue.v1.Licence", key=Key(partition="{tenant_id}", sort="{series}#{licensor_id}")):
    """The parts of a series that a licensor owns. Of two licensors with one part each, each gets half."""

    tenant_id: str
    series: Name
    licensor_id: Name
    parts: Annotated[int, Field(ge=1, le=1_000_000)] = 1


class RevenueWanted(BaseModel):
    """The parameters of a request for the revenue of a month."""

    month: Month = Field(description="A month, such as 2026-11.")
    amount: Annotated[int, Field(ge=0, le=10**18)] = Field(
        0, description="The amount to divide, in the smallest unit of the currency."
    )


class RevenueShare(BaseModel):
    """The share of a licensor, or of no licensor for series without a licence."""

    licensor_id: str | None
    seconds: int
    share: int
    """In millionths of the whole."""
    amount: int


class Revenue(BaseModel):
    """A month's revenue, divided by the seconds watched. Seconds, shares and amounts sum up exactly to the whole."""

    month: Month
    pings: int
    seconds: int
    amount: int
    licensors: list[RevenueShare]


@endpoint(
    path="revenue",
    summary="Divide a month's revenue between licensors",
    text="Divides an amount between licensors, by the seconds that were watched of their series in a month.",
    access=ACCESS,
)
def revenue(db: Dynashard, tenant_id: str, wanted: RevenueWanted) -> Revenue:
    """Divide a month's revenue between licensors, by the seconds watched of their series.

    Args:
        db: the entities.
        tenant_id: the owner of the series.
        wanted: the month, and the amount to divide.

    Raises `UndecodableItemError` if a licence or a roll-up does not fit: without it, the shares would be wrong.

    Cost: one listing of the month's roll-ups and one of all licences: 0.5 read units for about 25 series each.
    """
    start = datetime.strptime(wanted.month, "%Y-%m").replace(tzinfo=UTC)
    series = PLAYS.read(db, {"tenant_id": tenant_id}, level=Level.MONTH, start=start, end=Level.MONTH.end(start))
    owners: dict[str, dict[str | None, int]] = defaultdict(dict)
    for licence in db.collection(Licence).scan({"tenant_id": tenant_id}, strict=True):
        owners[licence.series][licence.licensor_id] = licence.parts
    seconds: dict[str | None, Fraction] = defaultdict(Fraction)
    for each in series:
        parts = owners.get(each.series) or {None: 1}
        for licensor, part in parts.items():
            seconds[licensor] += Fraction(each.seconds * part, sum(parts.values()))
    weights = dict(sorted(seconds.items(), key=lambda item: (item[0] is None, item[0] or "")))
    watched = sum(each.seconds for each in series)
    each_gets = [divide(whole, weights) for whole in (watched, 1_000_000, wanted.amount)]
    return Revenue(
        month=wanted.month,
        pings=sum(each.pings for each in series),
        seconds=watched,
        amount=wanted.amount,
        licensors=[
            RevenueShare(licensor_id=who, seconds=each_gets[0][who], share=each_gets[1][who], amount=each_gets[2][who])
            for who in weights
        ],
    )
