"""Kinds of fields that several entities have."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

ShortText = Annotated[str, Field(min_length=1, max_length=200)]
Moment = Annotated[datetime, AwareDatetime]
"""A time that says its zone."""


def in_utc(time: datetime) -> datetime:
    """A time that says its zone: a day, or a time without one, is one of UTC, as those in keys are."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
