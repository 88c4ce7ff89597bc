"""Quotas of requests per tenant and resource, and the headers that name them (draft-ietf-httpapi-ratelimit-headers-11).

A window is a fixed stretch of time, and has a counter in the idempotency table. A process takes a few requests at a
time from the counter, by a conditional write that never lets it exceed the quota, and admits so many without asking.

So the answers of all processes together admit at most the quota in a window. They may admit fewer: what a process has
taken and not used is lost for the window. The less is left, the less is taken at a time.

If the counter cannot be reached, requests are admitted: a quota is there for fairness, not a reason to be unavailable.
"""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Final, NamedTuple, NoReturn

from dynashard import schema
from dynashard.errors import ConditionFailedError, DynashardError, EngineError, FieldError, ValidationFailedError
from dynashard.transport.deadline import within
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Transport
from dynashard_serving.api.problems import add_headers
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.response import Response
from dynashard_serving.api.routes import Operation
from dynashard_serving.exposure import Quota

_SHARE: Final = 20
"""A process takes at most this part of a quota at a time."""
_LAST_SHARE: Final = 4
"""Of what is left in the counter, it takes at most this part."""
_SECONDS: Final = 0.5
"""The longest that a request waits for the counter."""
_UNREACHABLE_SECONDS: Final = 1.0
"""How long requests are admitted without asking after the counter could not be reached."""
_KEPT_SECONDS: Final = 3600
_MOST_WINDOWS: Final = 10_000
"""Windows that a process remembers."""
_TAKEN: Final = "taken"


class QuotaExceededError(DynashardError, code="quota_exceeded", status=429, retryable=True):
    """The tenant has used its quota of this window. `retry_after` is the time to the next one, in seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Standing(NamedTuple):
    """How a tenant stands in a window.

    Attributes:
        admitted: whether the request may be done.
        left: how many requests the process knows to be left; None if the counter could not be reached.
        seconds: until the window ends.
    """

    admitted: bool
    left: int | None
    seconds: int


class _Window:
    """What a process knows of a window: what it has taken and not used, and what was left in the counter then."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.taken = 0
        self.left: int | None = None
        self.unreachable_until = 0.0


class Quotas:
    """Counts requests. Safe to share between threads."""

    def __init__(self, table: str, transport: Transport, clock: Callable[[], float]) -> None:
        self._table = table
        self._transport = transport
        self._clock = clock
        self._windows: dict[tuple[str, str], _Window] = {}
        self._lock = own_lock(self)

    def take(self, path: str, tenant: str, quota: Quota, requests: int = 1) -> Standing:
        """Count requests of a tenant, if its quota has room for all of them.

        Cost: 1 write unit and 1 round trip for each part that is taken from the counter: about 30 in a window for each
        process that uses up a quota, 1 for a tenant with a single request, and none once the quota is used.
        """
        now = self._clock()
        number = int(now // quota.seconds)
        seconds = max(1, ceil((number + 1) * quota.seconds - now))
        with self._lock:
            window = self._window(path, tenant, number)
            if window.taken < requests and window.unreachable_until <= now:
                self._refill(f"quota#{path}#{number}#{tenant}", window, quota, requests - window.taken)
            if window.taken >= requests:
                window.taken -= requests
                return Standing(admitted=True, left=window.taken + (window.left or 0), seconds=seconds)
            if window.unreachable_until > now:
                return Standing(admitted=True, left=None, seconds=seconds)
            return Standing(admitted=False, left=window.taken + (window.left or 0), seconds=seconds)

    def _window(self, path: str, tenant: str, number: int) -> _Window:
        window = self._windows.get((path, tenant))
        if window is None or window.number != number:
            if len(self._windows) >= _MOST_WINDOWS:
                self._windows.clear()
            window = self._windows[path, tenant] = _Window(number)
        return window

    def _refill(self, key: str, window: _Window, quota: Quota, needed: int) -> None:
        """Take more from the counter; nothing if it has less than is needed."""
        while window.left is None or window.left >= needed:
            most = quota.requests // _SHARE if window.left is None else window.left // _LAST_SHARE
            part = max(needed, min(most, quota.requests // _SHARE))
            try:
                with within(_SECONDS):
                    used = self._count(key, window.number, quota, part)
            except ConditionFailedError as failed:
                taken = (failed.item or {}).get(_TAKEN, {"N": "0"})
                if "N" not in taken:
                    # Another program has damaged the counter, which says nothing until the window ends.
                    window.unreachable_until = self._clock() + _UNREACHABLE_SECONDS
                    return
                used = int(taken["N"])
                # Tried again with less, unless nothing is left.
                window.left = max(0, min(quota.requests - used, part - 1))
                continue
            except EngineError:
                window.unreachable_until = self._clock() + _UNREACHABLE_SECONDS
                return
            window.taken += part
            window.left = quota.requests - used
            return

    def _count(self, key: str, number: int, quota: Quota, part: int) -> int:
        """Add a part to the counter, and return what it has then; raises `ConditionFailedError` if it has no room."""
        expires = int((number + 1) * quota.seconds) + _KEPT_SECONDS
        answer = self._transport.call(
            "UpdateItem",
            {
                "TableName": self._table,
                "Key": {schema.IDEMPOTENCY_KEY: {"S": key}},
                "UpdateExpression": "ADD #taken :part SET #expires = :expires",
                "ConditionExpression": "attribute_not_exists(#taken) OR #taken <= :room",
                "ExpressionAttributeNames": {"#taken": _TAKEN, "#expires": schema.IDEMPOTENCY_TTL},
                "ExpressionAttributeValues": {
                    ":part": {"N": str(part)},
                    ":room": {"N": str(quota.requests - part)},
                    ":expires": {"N": str(expires)},
                },
                "ReturnValues": "UPDATED_NEW",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
        )
        return int(answer["Attributes"][_TAKEN]["N"])


class Limited:
    """An operation of a resource within its quota.

    Args:
        operation: what is done.
        path: the resource.
        quota: its quota.
        quotas: opens the counters.
        requests_in: how many requests one counts as.
    """

    def __init__(
        self,
        operation: Operation,
        path: str,
        quota: Quota,
        quotas: Callable[[], Quotas],
        requests_in: Callable[[ApiRequest], int] = lambda _: 1,
    ) -> None:
        self._operation = operation
        self._path = path
        self._quota = quota
        self._quotas = quotas
        self._requests_in = requests_in

    def __call__(self, incoming: ApiRequest) -> Response[Any]:
        """Do a request, or refuse it: 429, or 422 if it is more than the quota. All answers name what is left."""
        requests = self._requests_in(incoming)
        fits = requests <= self._quota.requests
        standing = self._quotas().take(self._path, incoming.tenant, self._quota, requests if fits else 1)
        headers = headers_of(self._path, self._quota, standing)
        try:
            if not standing.admitted:
                self._refuse(standing)
            if not fits:
                self._refuse_larger(requests)
            response = self._operation(incoming)
        except Exception as error:
            add_headers(error, headers)
            raise
        response.headers.update(headers)
        return response

    def _refuse(self, standing: Standing) -> NoReturn:
        left = f"{standing.left} of these are left" if standing.left else "these are used"
        raise QuotaExceededError(
            f"{self._path} takes {self._quota.requests} requests of a tenant in {self._quota.seconds} seconds, and "
            f"{left}. Try again in {standing.seconds} seconds.",
            retry_after=standing.seconds,
        )

    def _refuse_larger(self, requests: int) -> NoReturn:
        from dynashard_serving.operations.mixed_batches import REQUESTS  # noqa: PLC0415 - few requests are batches

        most = self._quota.requests
        text = f"A batch counts as its requests: these are {requests}, and the quota is {most}. Send at most {most}."
        raise ValidationFailedError(FieldError(REQUESTS, text, "out_of_range"))


def headers_of(path: str, quota: Quota, standing: Standing) -> Mapping[str, str]:
    """Return the headers of a standing: structured fields (RFC 9651)."""
    policy = f'"{path}";q={quota.requests};w={quota.seconds};qu="requests"'
    if standing.left is None:
        return {"RateLimit-Policy": policy}
    return {"RateLimit-Policy": policy, "RateLimit": f'"{path}";r={standing.left};t={standing.seconds}'}
