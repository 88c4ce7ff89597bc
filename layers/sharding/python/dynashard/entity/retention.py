"""How long items are kept after a time of theirs: some days, or whole months."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, ValidationInfo
    from pydantic_core import CoreSchema

_MONTHS: Final = 12


@dataclass(frozen=True, slots=True)
class Retention:
    """Counts an item's expiry from a time of the item, which says when it happened.

        class Ping(Entity, ..., expires="expires_at"):
            at: datetime
            expires_at: Annotated[datetime | None, Retention("at", months=3), Field(validate_default=True)] = None

    An item may name an earlier expiry. A later one is lowered.

    Args:
        after: the field with the time, declared above the expiry.
        days: it expires so many days after that time, to the second.
        months: it expires when so many calendar months in UTC have passed after the month of that time; 0 is the end of
            that month. So the items of a month expire all in the same second.
    """

    after: str
    days: int | None = None
    months: int | None = None

    def until(self, at: datetime) -> datetime:
        """Return when an item of this time expires, in UTC.

        Raises:
            ValueError: the time has no zone, or the expiry would be later than a datetime can say.
        """
        if at.tzinfo is None:
            raise ValueError(f"{self.after} has no zone, so nothing can be counted from it: write one, such as Z")
        begins = at.astimezone(UTC).replace(microsecond=0)
        try:
            if self.months is None:
                return begins + timedelta(days=self.days or 0)
            years, month = divmod(begins.month + self.months, _MONTHS)
            return datetime(begins.year + years, month + 1, 1, tzinfo=UTC)
        except (OverflowError, ValueError) as error:
            raise ValueError(f"{self.after} is {at}, and what is kept so long after it would never expire") from error

    def __get_pydantic_core_schema__(self, source: object, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema  # noqa: PLC0415 - pydantic has it by now

        return core_schema.with_info_after_validator_function(self._lowered, handler(source))

    def _lowered(self, expires: datetime | None, info: "ValidationInfo") -> datetime | None:
        at = info.data.get(self.after)
        if at is None:
            # It is not valid, which is what the caller learns, or it is optional and missing.
            return expires
        last = self.until(at)
        return last if expires is None else min(expires, last)
