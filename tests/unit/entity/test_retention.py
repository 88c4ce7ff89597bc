"""Retention: the expiry that is counted from an item's time, by days and by whole months."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from dynashard import Entity, Key, Retention
from dynashard.errors import DeclarationError
from tests.declaring import declare

pytestmark = pytest.mark.unit

TIMES = st.datetimes(datetime(1, 1, 2), datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive
VALIDATED = Field(validate_default=True)


class Reading(Entity, name="retained.v1.Reading", key=Key("{id}"), expires="expires_at"):
    id: str
    at: datetime
    expires_at: Annotated[datetime | None, Retention("at", months=1), Field(validate_default=True)] = None


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("months", "at", "until"),
    [
        (0, "2026-08-15T10:00:00Z", "2026-09-01T00:00:00Z"),
        (3, "2026-08-15T10:00:00Z", "2026-12-01T00:00:00Z"),
        (3, "2026-08-31T23:59:59.999999Z", "2026-12-01T00:00:00Z"),
        (3, "2026-09-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        (12, "2024-02-29T12:00:00Z", "2025-03-01T00:00:00Z"),
        (1, "2026-09-01T01:00:00+02:00", "2026-10-01T00:00:00Z"),
    ],
)
def test_whole_months_have_passed_when_a_months_items_expire(months: int, at: str, until: str) -> None:
    assert Retention("at", months=months).until(moment(at)) == moment(until)


@pytest.mark.parametrize(
    ("at", "expires_at"),
    [
        ("2026-08-15T10:00:00Z", "2026-08-16T10:00:00"),
        ("2026-08-15T10:00:00", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
    ],
)
def test_a_time_without_a_zone_or_outside_the_calendar_is_not_valid(at: str, expires_at: str | None) -> None:
    with pytest.raises(ValidationError, match="expires_at"):
        Reading.model_validate({"id": "a", "at": at, "expires_at": expires_at})


@given(at=TIMES, months=st.integers(0, 1200))
def test_items_of_a_month_expire_in_one_second_and_in_the_order_of_their_months(at: datetime, months: int) -> None:
    retention = Retention("at", months=months)
    until, first = retention.until(at), at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)

    assert (until.day, until.time()) == (1, datetime.min.time())
    assert (until.year - at.year) * 12 + until.month - at.month == months + 1
    assert retention.until(first) == until
    assert retention.until(first - timedelta(microseconds=1)) < until


@given(at=TIMES, days=st.integers(1, 36_500))
def test_days_are_counted_to_the_second(at: datetime, days: int) -> None:
    until = Retention("at", days=days).until(at)

    assert timedelta(days=days, seconds=-1) < until - at <= timedelta(days=days)
    assert until.microsecond == 0


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (None, "2026-10-01T00:00:00Z"),
        ("2026-08-20T00:00:00Z", "2026-08-20T00:00:00Z"),
        ("2027-01-01T00:00:00Z", "2026-10-01T00:00:00Z"),
    ],
)
def test_an_item_expires_earlier_if_it_says_so_and_never_later(asked: str | None, kept: str) -> None:
    item = Reading.model_validate({"id": "1", "at": "2026-08-15T10:00:00Z", "expires_at": asked})

    assert item.expires_at == moment(kept)


def test_of_a_wrong_time_only_that_is_reported() -> None:
    with pytest.raises(ValidationError) as refused:
        Reading.model_validate({"id": "1", "at": "yesterday"})

    assert [each["loc"] for each in refused.value.errors()] == [("at",)]


@pytest.mark.parametrize(
    ("at", "reason"),
    [(datetime(2026, 8, 15), "at has no zone"), (datetime(9999, 12, 1, tzinfo=timezone.utc), "would never expire")],  # noqa: DTZ001, UP017
)
def test_a_time_that_nothing_can_be_counted_from_is_refused(at: datetime, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Reading(id="1", at=at)


def expiring(retention: Retention, at: Any = datetime, **declared: Any) -> type[Entity]:
    """Declare an entity whose expiry is counted from `at`."""
    expiry = (Annotated[datetime | None, retention, VALIDATED], None)
    return declare({"at": at, "until": expiry}, **{"expires": "until", **declared})


def test_an_item_without_the_optional_time_expires_when_it_says() -> None:
    model: Any = expiring(Retention("at", days=1), (datetime | None, None))

    assert model(tenant="abc", id="1").until is None
    assert model(tenant="abc", id="1", at=moment("2026-08-15T10:00:00Z")).until == moment("2026-08-16T10:00:00Z")


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "neither": (lambda: expiring(Retention("at")), 'write Retention("at", months=3)'),
    "both": (lambda: expiring(Retention("at", 1, 1)), 'write Retention("at", months=3)'),
    "no day": (lambda: expiring(Retention("at", days=0)), "days is 0: write a whole number from 1"),
    "a month less": (lambda: expiring(Retention("at", months=-1)), "months is -1: write a whole number from 0"),
    "half a month": (lambda: expiring(Retention("at", months=0.5)), "months is 0.5"),  # type: ignore[arg-type]
    "true": (lambda: expiring(Retention("at", months=True)), "months is True"),
    "no field": (lambda: expiring(Retention("then", days=1)), "then, which is not a field"),
    "itself": (lambda: expiring(Retention("until", months=1)), "counted from itself"),
    "a date": (lambda: expiring(Retention("at", days=1), date), "declare at as a datetime"),
    "a time below": (
        lambda: declare({"until": (Annotated[datetime | None, Retention("at", 1), VALIDATED], None), "at": datetime},
                        expires="until"),
        "declare at above it",
    ),
    "a default that is not validated": (
        lambda: declare({"at": datetime, "until": (Annotated[datetime | None, Retention("at", 1)], None)},
                        expires="until"),
        "Field(validate_default=True)",
    ),
    "no expiry": (lambda: expiring(Retention("at", days=1), expires=None), 'write expires="until"'),
}  # fmt: skip


@pytest.mark.parametrize(("mistake", "advice"), MISTAKES.values(), ids=MISTAKES)
def test_a_wrong_retention_is_refused_with_the_correction(mistake: Callable[[], object], advice: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        mistake()

    assert advice in refused.value.reason
