"""The time of a sort key: its moment, and the first sort key of a moment, in each format."""

import re
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ksuid import Ksuid

from dynashard.key_time import KSUID, ULID, UUID7, TimeFormat, moment_format
from dynashard.keys import key_text

pytestmark = pytest.mark.unit

PLAIN, COMPACT = moment_format(), moment_format("%Y%m%dT%H%M%SZ")
FORMATS = [KSUID, ULID, UUID7, PLAIN, COMPACT]
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
moments = st.floats(1_400_000_001.0, 4_000_000_000.0)
formats = st.sampled_from(FORMATS)


def written(time_format: TimeFormat, at: float, random: int) -> str:
    """Return a sort key as what makes such keys writes it, at a moment."""
    moment = datetime.fromtimestamp(at, UTC)
    if time_format is KSUID:
        return str(Ksuid(moment, random.to_bytes(16)))
    milliseconds = int(moment.timestamp() * 1000)
    if time_format is ULID:
        number = milliseconds << 80 | random & (1 << 80) - 1
        return "".join(CROCKFORD[number >> 5 * place & 31] for place in reversed(range(26)))
    if time_format is UUID7:
        return str(UUID(int=milliseconds << 80 | 7 << 76 | (random & 0xFFF) << 64 | 2 << 62 | random >> 66))
    return key_text("at", moment, "" if time_format is PLAIN else "%Y%m%dT%H%M%SZ") + f"#{random}"


@given(formats, moments, st.integers(0, 2**128 - 1))
def test_a_key_has_the_moment_at_which_it_was_made_rounded_down(
    time_format: TimeFormat, at: float, random: int
) -> None:
    moment = time_format.moment(written(time_format, at, random))

    assert moment is not None
    assert at - time_format.unit / 1e6 - 1e-5 < moment <= at + 1e-5


@given(formats, moments, moments, st.integers(0, 2**128 - 1))
def test_the_first_key_of_a_moment_divides_earlier_keys_from_later_ones(
    time_format: TimeFormat, at: float, divided: float, random: int
) -> None:
    key, first = written(time_format, at, random), time_format.first(divided)

    assert (key < first) == ((time_format.moment(key) or 0) < time_format.moment_of(first))
    assert divided - 1e-5 <= time_format.moment_of(first) < divided + time_format.unit / 1e6 + 1e-5


@given(formats, moments)
def test_the_moment_of_a_first_key_has_this_first_key(time_format: TimeFormat, at: float) -> None:
    assert time_format.first(time_format.moment_of(time_format.first(at))) == time_format.first(at)


@pytest.mark.parametrize(
    ("time_format", "text"),
    [
        (KSUID, "ada"),
        (KSUID, "aWgEPTl1tmebfsQzFP4bxwgy80W"),
        (KSUID, "3MYWj5wCGeqGsnhAiFN7z43Bwn-"),
        (ULID, "01m86x1eh4000000000000000a"),
        (ULID, "81M86X1EH40000000000000000"),
        (ULID, "01M86X1EH4"),
        (UUID7, "01A20DD0-BA24-7000-8000-000000000000"),
        (UUID7, "01a20dd0-ba24-4000-8000-000000000000"),
        (PLAIN, "2026-11-24"),
        (PLAIN, "x2026-11-24T13:48:32.675431Z"),
        (COMPACT, "2026-11-24T13:48:33Z"),
    ],
)
def test_other_texts_have_no_moment(time_format: TimeFormat, text: str) -> None:
    assert not time_format.matches(text)
    assert time_format.moment(text) is None


def test_a_day_that_does_not_exist_has_no_moment() -> None:
    assert PLAIN.moment("2026-02-31T13:48:32.675431Z") is None
    with pytest.raises(ValueError, match="is not a moment as"):
        PLAIN.moment_of("2026")


def test_a_key_may_go_on_after_its_time() -> None:
    assert COMPACT.moment("20261124T134833Z#x") == COMPACT.moment("20261124T134833Z")
    assert KSUID.matches("3MYWj5wCGeqGsnhAiFN7z43BwnY#x")


@pytest.mark.parametrize(
    ("time_format", "text", "moment"),
    [
        # The examples of segmentio/ksuid and of RFC 9562.
        (KSUID, "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "2017-10-10T04:00:47Z"),
        (UUID7, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "2022-02-22T19:22:22Z"),
        (ULID, "01ARYZ6S41TSV4RRFFQ69G5FAV", "2016-07-30T22:36:16.385Z"),
        (PLAIN, "2026-11-24T13:48:32.675431Z", "2026-11-24T13:48:32.675431Z"),
        (COMPACT, "20261124T134833Z", "2026-11-24T13:48:33Z"),
    ],
)
def test_known_keys_have_their_moments(time_format: TimeFormat, text: str, moment: str) -> None:
    assert time_format.moment(text) == pytest.approx(datetime.fromisoformat(moment).timestamp(), abs=1e-7)


@pytest.mark.parametrize(
    ("time_format", "least", "most"),
    [
        (KSUID, "0" * 27, "aWgEPTl1tmebfsQzFP4bxwgy80V"),
        (ULID, "0" * 10, "7ZZZZZZZZZ"),
        (UUID7, "00000000-0000", "ffffffff-ffff"),
        (PLAIN, "1000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"),
        (COMPACT, "10000101T000000Z", "99991231T235959Z"),
    ],
)
def test_moments_beyond_a_format_are_its_first_or_last(time_format: TimeFormat, least: str, most: str) -> None:
    assert time_format.first(-1e12) == least
    # All keys of the last moment are valid, and the last one begins with it.
    assert time_format.moment_of(time_format.first(1e12)) == time_format.moment_of(most)
    assert time_format.first(-1e12) <= time_format.first(1_500_000_000.0) <= time_format.first(1e12) <= most


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("%d.%m.%Y %H:%M:%S", "do not sort by time"),
        ("%Y-%m-%d", "do not distinguish seconds"),
        ("%Y%m%d%H%M", "do not distinguish seconds"),
        ("%Y%Y%m%dT%H%M%S", "do not sort by time"),
        ("%y%m%dT%H%M%S", "%y does not sort by time"),
        ("%Y-%j", "%j does not sort by time"),
    ],
)
def test_formats_that_do_not_sort_by_time_are_refused(spec: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        moment_format(spec)


def test_a_percent_sign_and_dots_are_taken_literally() -> None:
    time_format = moment_format("%Y.%m.%d %%%H:%M:%S")

    assert time_format.matches("2026.11.24 %13:48:33")
    assert not time_format.matches("2026-11-24 %13:48:33")
