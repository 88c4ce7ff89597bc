"""Kinds of fields that several entities have."""

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

ShortText = Annotated[str, Field(min_length=1, max_length=200)]
Moment = Annotated[datetime, AwareDatetime]
"""A time that says its zone."""
