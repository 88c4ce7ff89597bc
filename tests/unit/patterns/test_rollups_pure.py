"""The pure functions of roll-ups: spans of time, division, and packs of items."""

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.entity import Entity, Key, Shards, definition
from dynashard.errors import DeclarationError, InvalidKeyError, InvalidQueryError, InvalidValueError
from dynashard_patterns.rollups import Level, RollUps, divide
from dynashard_patterns.rollups.levels import MAX_SPANS, check_range
from dynashard_patterns.rollups.packing import MOST_WRITES, packed
from tests.beats import BEATS, NOON, REGISTRY, Beat, Months, Sums, roll_ups

pytestmark = pytest.mark.unit

TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds of naive times


@given(TIMES, st.sampled_from(Level))
def test_every_time_lies_in_exactly_one_span(at: datetime, level: Level) -> None:
    start = level.start(at)

    assert start <= at < level.end(start)
    assert level.start(start) == start
    assert level.start(level.end(start)) == level.end(start)
    assert level.start(level.end(start) - timedelta(microseconds=1)) == start


@given(TIMES)
def test_a_shorter_span_lies_in_one_longer_span(at: datetime) -> None:
    levels = list(Level)

    for shorter, longer in pairwise(levels):
        assert longer.start(shorter.start(at)) == longer.start(at)


def test_spans_are_those_of_utc() -> None:
    at = datetime(2026, 12, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))

    assert Level.MONTH.start(at) == datetime(2026, 11, 1, tzinfo=UTC)
    assert Level.MONTH.end(Level.MONTH.start(at)) == datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("level", "length", "refused"),
    [
        (Level.MINUTE, timedelta(minutes=MAX_SPANS), False),
        (Level.MINUTE, timedelta(minutes=MAX_SPANS + 1), True),
        (Level.DAY, timedelta(days=366), False),
        (Level.HOUR, timedelta(0), True),
        (Level.HOUR, timedelta(seconds=-1), True),
    ],
)
def test_a_range_has_some_spans_but_not_too_many(level: Level, length: timedelta, refused: bool) -> None:  # noqa: FBT001
    if not refused:
        check_range(level, NOON, NOON + length)
        return
    with pytest.raises(InvalidQueryError) as failed:
        check_range(level, NOON, NOON + length)

    assert failed.value.field == "to"


def test_a_range_without_time_zones_is_refused() -> None:
    with pytest.raises(InvalidQueryError, match="zone"):
        check_range(Level.HOUR, datetime(2026, 1, 1), NOON)  # noqa: DTZ001 - the point


@pytest.mark.parametrize("level", Level)
def test_the_last_span_of_all_ends_with_the_last_time(level: Level) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    start = level.start(last)

    check_range(level, start, last)

    assert level.end(start) == last
    assert list(level.within(start, last)) == [start]


@pytest.mark.parametrize(
    ("name", "hours", "start", "end"),
    [("from", 5, datetime.min, datetime(1, 1, 1, 9)), ("to", -5, datetime(9999, 12, 31, 9), datetime.max)],  # noqa: DTZ001, DTZ901 - the zone is given below
)
def test_a_range_that_no_time_in_utc_can_express_is_refused(
    name: str, hours: int, start: datetime, end: datetime
) -> None:
    zone = timezone(timedelta(hours=hours))

    with pytest.raises(InvalidQueryError, match="9999") as failed:
        check_range(Level.HOUR, start.replace(tzinfo=zone), end.replace(tzinfo=zone))

    assert failed.value.field == name


WEIGHTS = st.dictionaries(st.text(max_size=3), st.integers(0, 10**9) | st.fractions(0, 10**6), max_size=20)


@given(st.integers(0, 10**12), WEIGHTS)
def test_parts_are_whole_numbers_fair_and_add_up_to_the_total(total: int, weights: dict[str, int | Fraction]) -> None:
    parts = divide(total, weights)

    whole = sum(weights.values())
    assert list(parts) == list(weights)
    assert all(type(part) is int for part in parts.values())
    assert sum(parts.values()) == (total if whole else 0)
    for key, part in parts.items():
        assert not whole or abs(part - Fraction(total) * weights[key] / whole) < 1


def test_the_rest_goes_to_the_largest_remainders() -> None:
    assert divide(100, {"a": 1, "b": 1, "c": 1}) == {"a": 34, "b": 33, "c": 33}
    assert divide(10, {"a": 1, "b": 2, "c": 3}) == {"a": 2, "b": 3, "c": 5}


def test_negative_totals_and_shares_are_refused() -> None:
    with pytest.raises(InvalidValueError):
        divide(-1, {"a": 1})
    with pytest.raises(InvalidValueError):
        divide(1, {"a": -1, "b": 2})


SONGS = st.lists(
    st.builds(
        Beat,
        tenant=st.sampled_from(["abc", "xyz"]),
        song=st.sampled_from(["one", "two", "three"]),
        at=st.integers(0, 300).map(lambda minutes: NOON + timedelta(minutes=minutes)),
        id=st.integers(0, 60).map(str),
        loud=st.integers(0, 3),
    ),
    max_size=200,
)


@given(SONGS)
def test_packs_have_each_item_once_fit_a_transaction_and_add_up(beats: list[Beat]) -> None:
    packs = list(packed(BEATS, beats))

    distinct = {(b.tenant, b.song, b.at, b.id): b for b in beats}
    truth: Counter[tuple[Any, ...]] = Counter()
    for beat in distinct.values():
        for level in Level:
            truth[level, level.start(beat.at), "beats"] += 1
            truth[level, level.start(beat.at), "loud"] += beat.loud
    found: Counter[tuple[Any, ...]] = Counter()
    for pack in packs:
        assert len(pack.items) + 2 * len(pack.rows) <= MOST_WRITES
        for row, values in pack.rows.items():
            fields = row.fields(0)
            for name, value in values.items():
                found[fields["level"], fields["start"], name] += int(value)
    marks = [mark for pack in packs for mark in pack.items]
    assert len(marks) == len(set(marks)) == len(distinct)
    assert +found == +truth


def test_neighbours_share_their_rows() -> None:
    beats = [Beat(tenant="abc", song=song, at=NOON, id=str(n)) for n in range(40) for song in ("one", "two")]

    packs = list(packed(BEATS, beats))

    assert [len(pack.items) for pack in packs] == [80]
    assert len(packs[0].rows) == 7


def test_a_pack_is_as_full_as_a_transaction_in_which_every_row_takes_two_writes() -> None:
    beats = [Beat(tenant="abc", song=f"{n:02d}", at=NOON, id="1") for n in range(28)]

    packs = list(packed(BEATS, beats))

    # Each item has three rows of its song, and all share that of the month.
    assert [(len(pack.items), len(pack.rows)) for pack in packs] == [(14, 43), (14, 43)]
    assert MOST_WRITES == 14 + 2 * 43


def test_items_that_add_zero_are_left_out() -> None:
    quiet = roll_ups(add=lambda beat: {"loud": beat.loud})
    beats = [Beat(tenant="abc", song="one", at=NOON, id=str(loud), loud=loud) for loud in (0, 1)]

    [pack] = packed(quiet, beats)

    assert [beat.loud for beat in pack.items.values()] == [1]


def test_the_marker_of_an_item_depends_only_on_its_key_and_the_roll_ups() -> None:
    one = Beat(tenant="abc", song="one", at=NOON, id="1")
    louder = one.model_copy(update={"loud": 3})
    other = one.model_copy(update={"id": "2"})

    assert BEATS.mark(one) == BEATS.mark(louder) != BEATS.mark(other)
    assert BEATS.mark(one) != roll_ups(name="others").mark(one)


class Rain(Entity, name="test.v1.Rain", key=Key("{tenant}", "{at}#{place}"), registry=REGISTRY):
    tenant: str
    place: str
    at: datetime


class Drops(Entity, name="test.v1.Drops", key=Key("{tenant}:{place}", "{level}#{start}#{slot:02d}"), registry=REGISTRY):
    tenant: str
    place: str
    level: Level
    start: datetime
    slot: int = 0
    drops: int = 0


def test_an_item_with_values_that_its_row_keys_cannot_hold_is_refused() -> None:
    RollUps(name="rain", of=Rain, at="at", into={Drops: ("day",)}, add=lambda _: {"drops": 1})
    rain = definition(Rain)

    assert rain.encode({"tenant": "abc", "place": "sea", "at": NOON})
    with pytest.raises(InvalidKeyError, match=r"its roll-ups, test.v1.Drops, cannot hold") as refused:
        rain.encode({"tenant": "abc", "place": "sea:side", "at": NOON})
    assert refused.value.field == "place"
    assert rain.encode({"place": "sea:side"}), "what is stored already can be changed"


class NoSlot(Entity, name="test.v1.NoSlot", key=Key("{tenant}", "{level}#{start}"), registry=REGISTRY):
    tenant: str
    level: Level
    start: datetime
    slot: int = 0


class Unknown(Entity, name="test.v1.Unknown", key=Key("{who}", "{level}#{start}#{slot:02d}"), registry=REGISTRY):
    who: str
    level: Level
    start: datetime
    slot: int


class Needy(Entity, name="test.v1.Needy", key=Key("{tenant}", "{level}#{start}#{slot:02d}"), registry=REGISTRY):
    tenant: str
    level: Level
    start: datetime
    slot: int
    beats: int


class Late(Entity, name="test.v1.Late", key=Key("{tenant}:{start:%Y}", "{level}#{slot:02d}"), registry=REGISTRY):
    tenant: str
    level: Level
    start: datetime
    slot: int


class Slotted(Entity, name="test.v1.Slotted", key=Key("{tenant}", "{level}#{slot:02d}#{start}"), registry=REGISTRY):
    tenant: str
    level: Level
    start: datetime
    slot: int


class Strewn(
    Entity,
    name="test.v1.Strewn",
    key=Key("{tenant}", "{level}#{start}#{slot:02d}"),
    shards=Shards(4, "random"),
    registry=REGISTRY,
):
    tenant: str
    level: Level
    start: datetime
    slot: int


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"at": "when"}, "has no field when"),
        ({"by_time": "by_place"}, "has no index by_place"),
        ({"spread": 0}, "spread of 0"),
        ({"into": {}}, "at least one"),
        ({"into": {Sums: ("day",), Months: ()}}, "each entity has at least one"),
        ({"into": {Sums: ("day", "day")}}, "each level is summed up into one entity"),
        ({"into": {Sums: ("decade",)}}, "'decade' is not one of minute, hour, day, month"),
        ({"keep": {"decade": timedelta(1)}}, "'decade' is not one of"),
        ({"keep": {"day": timedelta(1)}}, "no field of expiry"),
        ({"into": {NoSlot: ("day",)}}, "lacks slot"),
        ({"into": {Unknown: ("day",)}}, "summed up by who, which is not a field of test.v1.Beat"),
        ({"into": {Needy: ("day",)}}, "field beats of test.v1.Needy needs a default"),
        ({"into": {Late: ("day",)}}, "start must be in the sort key"),
        ({"into": {Slotted: ("day",)}}, "slot must come after start in the sort key"),
        ({"into": {Strewn: ("day",)}}, "not a random one"),
    ],
)
def test_a_wrong_declaration_is_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(DeclarationError, match="roll-ups beats") as refused:
        roll_ups(**changed)

    assert reason in str(refused.value)
