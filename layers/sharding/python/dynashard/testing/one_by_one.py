"""A base class for transports of tests that send several requests one after the other."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from dynashard.errors import DynashardError
from dynashard.transport.interface import Call, Resend, Wire, answers_of


class OneByOne:
    """Implements the methods of `Transport` except `call`. All calls are sent, then the first error is raised."""

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """See `Transport.call`."""
        raise NotImplementedError

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """See `Transport.call_all`."""
        return answers_of(self.try_all(calls, concurrency=concurrency))

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """See `Transport.try_all`."""
        del concurrency
        return [self._tried(call) for call in calls]

    def close(self) -> None:
        """Do nothing: an inner transport belongs to its owner."""

    def _tried(self, call: Call) -> Wire | DynashardError:
        try:
            answer = self.call(call.operation, call.request, resend=call.resend)
            # As the direct transport does with the bytes that arrive.
            return (call.reader and call.reader(orjson.dumps(answer))) or answer
        except DynashardError as error:
            return error
