"""The window of times in which new items are accepted, and its description."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.samples.pings import Ping
from dynashard_serving.declare import Window

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WEEK = Window("at", past=timedelta(days=7), ahead=timedelta(minutes=5))


@pytest.mark.parametrize(
    ("seconds", "holds"),
    [(0, True), (-7 * 86400, True), (-7 * 86400 - 1, False), (300, True), (301, False)],
)
def test_a_window_includes_its_ends(seconds: int, *, holds: bool) -> None:
    at = NOW + timedelta(seconds=seconds)
    ping = Ping(tenant_id="abc", series="s", episode="e", at=at, id="p", session_id="x")

    assert WEEK.holds(ping, NOW) is holds


@pytest.mark.parametrize(
    ("past", "ahead", "described"),
    [
        (timedelta(days=7), timedelta(minutes=5), "7 days in the past or 5 minutes"),
        (timedelta(days=1), timedelta(hours=1), "1 day in the past or 1 hour"),
        (timedelta(hours=36), timedelta(seconds=90), "36 hours in the past or 90 seconds"),
        (timedelta(0), timedelta(minutes=1), "0 seconds in the past or 1 minute"),
    ],
)
def test_a_window_is_described_in_everyday_units(past: timedelta, ahead: timedelta, described: str) -> None:
    assert str(Window("at", past, ahead)) == f"The time must be at most {described} in the future."
