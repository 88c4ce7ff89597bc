"""Who is on call: against an answer that looks at every minute, and where clocks change."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from domain.samples.rota import Source, Turn, Unit, rota
from domain.samples.schedules import Layer
from tests.depth import examples
from tests.unit.domain.rota_world import MINUTE, Scene, minutes, scene

pytestmark = pytest.mark.unit

SCHEDULES = examples(20_000, default=550)
"""550, or 20,000 with the profile `deep`. Schedule 509 takes a branch that no earlier one takes."""
PART = 50
PARTS = range(0, SCHEDULES, PART)


def rota_of(known: Scene, start: datetime, end: datetime) -> list[Turn]:
    return rota(ZoneInfo(known.zone), known.layers, known.shifts, known.overrides, start=start, end=end)


@pytest.mark.parametrize("first", PARTS)
def test_random_schedules_are_equal_to_an_answer_by_the_minute(first: int) -> None:
    for seed in range(first, first + PART):
        known = scene(seed)
        found = rota_of(known, known.start, known.end)

        by_minute: list[tuple[str | None, str]] = []
        for turn in found:
            by_minute += [(turn.user, turn.of)] * ((turn.end - turn.start) // MINUTE)
        assert by_minute == minutes(known), f"scene({seed})"
        assert all(one.end == other.start and one[2:] != other[2:] for one, other in pairwise(found)), f"scene({seed})"


@pytest.mark.parametrize("first", PARTS)
def test_a_moment_has_the_answer_of_the_range_around_it(first: int) -> None:
    for seed in range(first, first + PART):
        known = scene(seed)
        for turn in rota_of(known, known.start, known.end):
            at = turn.start + (turn.end - turn.start) / 3
            [now] = rota_of(known, at, at + timedelta(microseconds=1))
            assert (now.user, now.of) == (turn.user, turn.of), f"scene({seed}) at {at}"


def test_a_moment_of_the_day_after_a_skipped_one_has_the_answer_of_its_range() -> None:
    zone = ZoneInfo("Pacific/Apia")
    first = datetime(2011, 12, 28, 21, tzinfo=zone)
    rotation = Layer(users=["ada", "bob", "cyd"], starts_at=first, unit=Unit.DAYS)
    # The clock went from the end of the 29th to the 31st, so the handoffs of the 30th and the 31st are one.
    morning = datetime(2011, 12, 31, 9, tzinfo=zone)

    [now] = rota(zone, [rotation], [], [], start=morning, end=morning + MINUTE)

    turns = rota(zone, [rotation], [], [], start=first, end=first + timedelta(days=5))
    assert now.user == next(turn.user for turn in turns if turn.start <= morning < turn.end) == "bob"


def handoffs(zone: str, first: datetime, days: int, **layer: object) -> list[str]:
    """Return when turns of two users start on the clock of a zone, with the offset."""
    rotation = Layer(users=["ada", "bob"], starts_at=first, **layer)
    turns = rota(ZoneInfo(zone), [rotation], [], [], start=first, end=first + timedelta(days=days))
    return [turn.start.astimezone(ZoneInfo(zone)).strftime("%d %H:%M%z") for turn in turns]


def test_a_daily_handoff_keeps_its_time_on_the_clock_when_summer_begins() -> None:
    first = datetime(2026, 3, 28, 8, tzinfo=ZoneInfo("Europe/Berlin"))

    assert handoffs("Europe/Berlin", first, 3, unit=Unit.DAYS) == ["28 08:00+0100", "29 08:00+0200", "30 08:00+0200"]


def test_hours_pass_as_they_do_when_summer_begins() -> None:
    first = datetime(2026, 3, 28, 8, tzinfo=ZoneInfo("Europe/Berlin"))

    found = handoffs("Europe/Berlin", first, 2, unit=Unit.HOURS, every=24)
    assert found == ["28 08:00+0100", "29 09:00+0200"]


def test_a_handoff_at_a_skipped_time_happens_as_if_the_clock_had_not_changed() -> None:
    first = datetime(2026, 3, 28, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    assert handoffs("Europe/Berlin", first, 2, unit=Unit.DAYS)[1] == "29 03:30+0200"


def test_a_handoff_at_a_time_that_comes_twice_happens_the_first_time() -> None:
    first = datetime(2026, 10, 24, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    assert handoffs("Europe/Berlin", first, 2, unit=Unit.DAYS)[1] == "25 02:30+0200"


def test_a_gap_is_said() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    shift = Turn(noon, noon + timedelta(hours=1), "ada", Source.SHIFT, "s1")

    found = rota(UTC, [], [shift], [], start=noon - timedelta(hours=1), end=noon + timedelta(hours=2))
    assert [turn.user for turn in found] == [None, "ada", None]
