"""Types of fields that several entities share."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

ShortText = Annotated[str, Field(min_length=1, max_length=200)]


def _on_the_calendar(time: datetime) -> datetime:
    try:
        time.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time lies outside the years 1 to 9999 in UTC") from None
    return time


Moment = Annotated[datetime, AwareDatetime, AfterValidator(_on_the_calendar)]
"""A time with a zone."""
