"""Which keys may be written and read now, by the clock of a process."""

import re
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from dynashard import Shards, definition
from dynashard.entity import ItemKey, Ulid
from dynashard.errors import ClockOffError, ConfigurationError, InvalidKeyError, KeyTooFarAheadError
from dynashard.key_clock import DEFAULT_BOUNDS, ClockBounds, KeyClock
from dynashard.key_time import ULID
from dynashard.runtime import Runtime
from dynashard.transport.clock_offset import ClockOffset
from tests.declaring import declare, sorted_by

pytestmark = pytest.mark.unit

NOW = 1_780_000_000.0
BOUNDS = ClockBounds(off=2.0, ahead=3.0)
PAPER = definition(declare({"at": datetime}, key=sorted_by("{at}"), shards=Shards(start=1, max=8, placement="epochs")))
PAIRED = definition(
    declare({"at": datetime}, key=sorted_by("{at}#{id}"), shards=Shards(start=1, max=8, placement="epochs"))
)
NUMBERED = definition(declare({"id": Ulid}, key=sorted_by("{id}"), shards=Shards(start=1, max=8, placement="epochs")))
NOTE = definition(declare({"at": datetime}, key=sorted_by("{at}"), shards=Shards(8)))


def key(ahead: float) -> ItemKey:
    """Return the key of a moment."""
    return PAPER.key_of({"tenant": "t", "at": datetime.fromtimestamp(NOW + ahead, UTC)})


def ulid(ahead: float) -> ItemKey:
    return ItemKey("t", ULID.first(NOW + ahead) + "0" * 16)


class Process:
    """A process whose clock the test sets."""

    def __init__(self, off: float | None = None) -> None:
        self.now, self.offset = NOW, ClockOffset()
        if off is not None:
            self.answer(NOW, off)
        self.keys = KeyClock(lambda: self.now, self.offset, BOUNDS)

    def answer(self, at: float, off: float = 0.0) -> None:
        """Take an answer of a time, by a clock that is off."""
        dated = format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)
        self.offset.observe(dated, at + off, at + off + 0.2)


def test_bounds_are_five_seconds_unless_they_are_set() -> None:
    assert (DEFAULT_BOUNDS.off, DEFAULT_BOUNDS.ahead) == (5, 5)
    assert KeyClock().bounds == DEFAULT_BOUNDS


def test_clocks_and_keys_may_be_required_to_be_exact_but_not_to_be_early() -> None:
    assert ClockBounds(off=0, ahead=0).placed == 0
    for bounds in ({"off": -0.5, "ahead": 1.0}, {"off": 1.0, "ahead": -0.5}):
        with pytest.raises(ConfigurationError, match="not below 0"):
            ClockBounds(**bounds)


def test_a_key_is_written_until_it_is_too_far_ahead_and_read_as_long_as_any_process_may_have_written_it() -> None:
    keys = Process().keys

    keys.require_writable(PAPER, key(2.999))
    with pytest.raises(KeyTooFarAheadError) as refused:
        keys.require_writable(PAPER, key(3.0))

    assert keys.readable(PAPER, key(6.999))
    assert not keys.readable(PAPER, key(7.0))
    assert (refused.value.ahead, refused.value.now) == (3.0, "2026-05-28T20:26:40.000+00:00")
    assert "is more than 3 seconds ahead of 2026-05-28T20:26:40.000+00:00; send it" in str(refused.value)


def test_the_latest_key_that_anybody_has_placed_is_off_by_a_writer_a_reader_and_the_controller() -> None:
    assert (BOUNDS.readable, BOUNDS.placed) == (7.0, 11.0)


def test_a_key_may_be_written_and_read_when_its_time_has_come() -> None:
    process = Process()
    assert not process.keys.readable(PAPER, key(10))

    process.now += 7.1
    process.keys.require_writable(PAPER, key(10))

    assert process.keys.readable(PAPER, key(10))


def test_a_clock_that_is_set_back_allows_less() -> None:
    process = Process()
    process.keys.require_writable(PAPER, key(2))
    assert process.keys.readable(PAPER, key(6))

    process.now -= 5

    assert not process.keys.readable(PAPER, key(6))
    with pytest.raises(KeyTooFarAheadError):
        process.keys.require_writable(PAPER, key(2))


def test_forms_do_not_share_what_is_allowed() -> None:
    keys = Process().keys

    assert keys.readable(PAPER, key(6))

    assert keys.readable(NUMBERED, ulid(6))
    assert not keys.readable(NUMBERED, ulid(8))


def test_a_key_that_is_too_far_ahead_is_refused_with_its_field_and_how_long_to_wait() -> None:
    ahead = PAIRED.key_of({"tenant": "t", "at": datetime.fromtimestamp(NOW + 10, UTC), "id": "1"})

    with pytest.raises(KeyTooFarAheadError) as refused:
        Process().keys.require_writable(PAIRED, ahead)

    assert (refused.value.field, refused.value.wait) == ("at", 7.0)


def test_a_key_without_a_time_is_refused_with_its_field() -> None:
    with pytest.raises(InvalidKeyError, match=re.escape("'x#1' does not begin with a moment, as keys of")) as refused:
        Process().keys.require_writable(PAIRED, ItemKey("t", "x#1"))

    assert refused.value.field == "at"


def test_keys_of_other_placements_are_not_judged() -> None:
    keys = Process(off=60.0).keys

    keys.require_writable(NOTE, key(1e6))
    keys.require_writable(NOTE, ItemKey("t", "x"))


@pytest.mark.parametrize(("off", "shown"), [(29.76, "29.4 s ahead"), (-29.76, "30.2 s behind")])
def test_a_clock_that_is_off_writes_nothing_and_says_by_how_much(off: float, shown: str) -> None:
    with pytest.raises(ClockOffError, match=re.escape(f"this process's clock is {shown}, and at most 2 s")) as refused:
        Process(off).keys.require_writable(PAPER, key(0))

    assert f"{abs(refused.value.off)} s" == shown.partition(" s")[0] + " s"
    assert (refused.value.off > 0) == (off > 0)


def test_less_than_a_second_ahead_is_ahead() -> None:
    process = Process(off=0.9)
    keys = KeyClock(lambda: NOW, process.offset, ClockBounds(off=0.1, ahead=3.0))

    with pytest.raises(ClockOffError, match=re.escape("this process's clock is 0.5 s ahead, and at most 0.1 s")):
        keys.require_writable(PAPER, key(0))


def test_a_clock_that_is_off_is_logged_once_and_again_after_it_was_right(caplog: pytest.LogCaptureFixture) -> None:
    process = Process(off=60.0)

    def refused() -> int:
        with pytest.raises(ClockOffError):
            process.keys.require_writable(PAPER, key(0))
        return len(caplog.records)

    assert [refused(), refused()] == [1, 1]
    process.answer(NOW + 1)
    process.keys.require_writable(PAPER, key(0))
    process.answer(NOW + 2, off=60.0)
    assert [refused(), refused()] == [2, 2]


def test_a_clock_that_may_be_off_is_asked_about_again_after_a_pause_or_when_it_was_set_back() -> None:
    process, asked = Process(off=60.0), list[ItemKey]()

    def refused() -> int:
        with pytest.raises(ClockOffError):
            process.keys.require_writable(PAPER, key(-20), lambda _, asking: asked.append(asking))
        return len(asked)

    assert [refused(), refused()] == [1, 1]
    process.now += 0.75
    assert [refused(), refused()] == [2, 2]
    process.now -= 10
    assert [refused(), refused()] == [3, 3]


def test_a_key_waits_for_at_most_two_slow_answers() -> None:
    process, asked = Process(off=60.0), list[float]()

    def slow(*_: object) -> None:
        process.now += 1.0
        asked.append(process.now)

    with pytest.raises(ClockOffError):
        process.keys.require_writable(PAPER, key(0), slow)

    assert len(asked) == 2


def test_a_clock_that_is_nearly_right_writes() -> None:
    Process(off=0.5).keys.require_writable(PAPER, key(0))


class Set:
    """A clock that is set after an answer that took five seconds, and was dated when it came."""

    def __init__(self, off: float) -> None:
        self.off = 0.0
        self.offset = ClockOffset(Runtime(clock=lambda: NOW + self.off, monotonic=lambda: NOW))
        self.answer(NOW - 5.0)
        self.off = off
        self.keys = KeyClock(lambda: NOW + self.off, self.offset, BOUNDS)

    def answer(self, sent: float) -> None:
        self.offset.observe(format_datetime(datetime.fromtimestamp(NOW, UTC), usegmt=True), sent, NOW + self.off)


@pytest.mark.parametrize("off", [-5.0, -4.5])
def test_a_clock_that_was_set_to_the_time_of_the_last_request_is_measured_anew(off: float) -> None:
    clock = Set(off)

    with pytest.raises(ClockOffError, match=re.escape(f"is {0.5 - off:.1f} s behind, and at most 2 s")):
        clock.keys.require_writable(PAPER, key(-9), lambda *_: clock.answer(NOW + clock.off))


def test_nothing_is_written_by_a_clock_that_was_set_while_no_answer_says_how_far_it_is_off() -> None:
    clock, asked = Set(-5.0), []

    with pytest.raises(ClockOffError, match="was set, and no answer of DynamoDB has shown since how far"):
        clock.keys.require_writable(PAPER, key(-9), lambda _, asking: asked.append(asking))

    assert asked == [key(-9)] * 2
    assert clock.offset.exceeds(1e9)
