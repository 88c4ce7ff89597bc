"""Checks of the dates of answers, by which a process learns how far its clock is off."""

from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from dynashard_checks.verify_aws.check import Check, Outcome, differs, holds
from dynashard_checks.verify_aws.context import Context, answer_of

REQUESTS: Final = 30
_EVERY_SECONDS: Final = 1.0
_WITHIN_SECONDS: Final = 1.0
"""By how much the clocks of servers may differ, besides the whole seconds of a date."""

Send = Callable[..., Mapping[str, Any]]


class Ahead(NamedTuple):
    """By how many seconds this machine's clock is ahead of a server's, at least and at most."""

    least: float
    most: float


def answer_dates(context: Context) -> Outcome:
    """Compare the dates of many answers, of servers of tables and of streams, with the times of their requests."""
    dynamodb, streams = context.client("dynamodb"), context.client("dynamodbstreams")
    seen: list[Ahead] = []
    for number in range(REQUESTS):
        each = [_ahead(context, dynamodb.list_tables, Limit=1)]
        if number % 10 == 0:
            each.append(_ahead(context, streams.list_streams, Limit=1))
        if None in each:
            return differs("an answer has no `Date`")
        seen += filter(None, each)
        context.clock.sleep(_EVERY_SECONDS)
    least, most = max(each.least for each in seen), min(each.most for each in seen)
    clock = f"this machine's clock is {least:+.2f} to {most:+.2f} s off"
    if least - most > _WITHIN_SECONDS:
        return differs(f"the dates of {len(seen)} answers contradict each other by {least - most:.2f} s")
    return holds(f"{len(seen)} dates agree; {clock}")


def _ahead(context: Context, send: Send, **request: Any) -> Ahead | None:
    """Return what the date of an answer says, also of a refusal; None if it has none."""
    sent = context.clock.now()
    answer = answer_of(send, **request).document
    received = context.clock.now()
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if date is None:
        return None
    second = parsedate_to_datetime(date).timestamp()
    return Ahead(sent - second - 1, received - second)


CHECKS: Final = (
    Check(
        "answer-dates",
        "the dates of answers are those of one clock, to a second",
        answer_dates,
        local=True,
    ),
)
