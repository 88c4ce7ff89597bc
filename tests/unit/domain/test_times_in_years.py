"""Times of samples that must lie in certain years are accepted if their stored form, which is in UTC, is."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from domain.samples import pings, schedules

TYPES = [schedules.RotaTime, pings.Moment]
ACCEPTED = ["2000-01-01T00:00:00Z", "1999-12-31T23:00:00-01:00", "2199-12-31T23:59:59Z", "2200-01-01T00:30:00+01:00"]
REFUSED = [
    "2000-01-01T00:00:00+14:00",
    "2199-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("text", ACCEPTED)
def test_a_time_of_these_years_in_utc_is_accepted(kind: Any, text: str) -> None:
    assert TypeAdapter(kind).validate_python(text)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("text", REFUSED)
def test_a_time_of_other_years_in_utc_is_refused_however_it_is_written(kind: Any, text: str) -> None:
    with pytest.raises(ValidationError, match=r"2000 to 2199|years 1 to 9999"):
        TypeAdapter(kind).validate_python(text)
