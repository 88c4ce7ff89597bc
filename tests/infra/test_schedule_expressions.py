"""Times of a schedule: what is accepted, and that each mistake is refused with its remedy."""

import re

import pytest

from dynashard_cdk.schedule_expressions import expression, time_zone

pytestmark = pytest.mark.infra


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        ("17:05", "cron(5 17 * * ? *)"),
        ("00:00", "cron(0 0 * * ? *)"),
        ("cron(0 17 ? * MON-FRI *)", "cron(0 17 ? * MON-FRI *)"),
        ("cron(0  17 ? * mon,WED *)", "cron(0 17 ? * mon,WED *)"),
        ("cron(*/15 8-18/2 L * ? 2026-2030)", "cron(*/15 8-18/2 L * ? 2026-2030)"),
        ("cron(0 0 15W JAN,JUL ? *)", "cron(0 0 15W JAN,JUL ? *)"),
        ("cron(0 0 ? * 6#3 *)", "cron(0 0 ? * 6#3 *)"),
        ("at(2026-12-24T17:00:00)", "at(2026-12-24T17:00:00)"),
    ],
)
def test_a_time_of_a_schedule_is_given_to_the_scheduler(written: str, taken: str) -> None:
    assert expression(written) == taken


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "'' is not a time of a schedule: write a time of day"),
        ("24:00", "'24:00' is not a time of a schedule"),
        ("7:00", "'7:00' is not a time of a schedule"),
        ("5 pm", "is not a time of a schedule"),
        ("rate(1 hour)", "'rate(1 hour)' is not a time of a schedule: write a time of day"),
        ("0 17 * * *", "is not a time of a schedule"),
        ("cron(0 17 * * *)", "has 5 fields; it needs 6: minutes, hours, day of month, month, day of week, year"),
        ("cron(60 17 * * ? *)", "'60' is not allowed as minutes: write 0 to 59, or *"),
        ("cron(0 24 * * ? *)", "'24' is not allowed as hours"),
        ("cron(0 17 0 * ? *)", "'0' is not allowed as day of month"),
        ("cron(0 17 ? * SUNDAY *)", "'SUNDAY' is not allowed as day of week"),
        ("cron(0 17 ? 13 MON *)", "'13' is not allowed as month"),
        ("cron(0 17 * * * *)", "must have ? as its day of month or as its day of week"),
        ("cron(0 17 ? * ? *)", "must have ? as its day of month or as its day of week"),
        ("cron(0 18-8 * * ? *)", "'18-8' is not a range of hours: write the lower value first"),
        ("cron(*/x 8 * * ? *)", "'*/X' is not a step of minutes"),
        ("cron(*/0 8 * * ? *)", "'*/0' is not a step of minutes"),
        ("at(2026-12-2\u0664T17:00:00)", "is not a time of a schedule"),
        ("cron(\u0665 8 * * ? *)", "is not a time of a schedule"),
        ("cron(? 8 * * ? *)", "'?' is not allowed as minutes"),
        ("at(2026-12-24 17:00)", "is not a date and time: write at(2026-12-24T17:00:00)"),
        ("at(2026-02-30T17:00:00)", "is not a date and time"),
        ("at(2026-12-24T25:00:00)", "is not a date and time"),
        ("at(2026-12-24T17:00:00Z)", "the zone belongs in time_zone"),
    ],
)
def test_another_time_is_refused_with_what_to_write(written: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        expression(written)


def test_a_time_zone_is_known_or_refused_with_similar_ones() -> None:
    assert time_zone("America/New_York") == "America/New_York"
    with pytest.raises(ValueError, match=r"'America/Newyork' is not a time zone .* America/New_York"):
        time_zone("America/Newyork")
    with pytest.raises(ValueError, match="write one such as"):
        time_zone("here")
