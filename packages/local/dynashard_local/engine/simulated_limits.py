"""The simulator's model of partitions before the local engine, which has none.

What a scenario's table would throttle, at a 500th of its limits, is answered with 400 as DynamoDB does. A GET of
`/throttles` returns what was throttled.
"""

import re
import time
from typing import Final

import orjson

from dynashard_lab.simulate.live import LiveModel, scaled
from dynashard_lab.simulate.live_throttles import PATH
from dynashard_lab.simulate.scenario import load
from dynashard_local.engine.messages import Answer, Send, response, with_length
from dynashard_tools.failure import CommandError

_TARGET: Final = re.compile(rb"\r\nx-amz-target: *DynamoDB_20120810\.(\w+)", re.IGNORECASE)
_THROTTLES: Final = re.compile(rb"GET %s(?:\?seconds=(\d+))? " % PATH.encode())
_OK: Final = b"HTTP/1.1 200"
_MALFORMED: Final = (ValueError, TypeError, AttributeError, LookupError, StopIteration, RuntimeError)
"""What reading a request raises that has not the shape of its operation."""


def limits_of(scenario: str) -> Answer:
    """Return what answers requests as the table of a scenario would; raises `ValueError` if there is no such one."""
    try:
        first = next(iter(load(scenario).values()))
    except CommandError as error:
        raise ValueError(str(error)) from error
    return _Limits(LiveModel(scaled(first), time.monotonic)).answer


class _Limits:
    """Throttles what a model decides."""

    def __init__(self, model: LiveModel) -> None:
        self._model = model

    async def answer(self, head: bytes, body: bytes, send: Send) -> bytes:
        """Answer a request, by the engine if the model admits it."""
        target = _TARGET.search(head)
        if asked := _THROTTLES.match(head):
            return response(200, self._model.throttled(float(asked[1] or 900)))
        if target is None:
            return await send(head, body)
        operation = target[1].decode()
        try:
            decision = self._model.decide(operation, orjson.loads(body))
        except _MALFORMED:
            # The engine refuses it, and says what is wrong.
            return await send(head, body)
        if decision.refused is not None:
            return response(400, decision.refused)
        if decision.unprocessed:
            body = orjson.dumps(decision.request)
            head = with_length(head, len(body))
        answer = await send(head, body)
        if not answer.startswith(_OK):
            return answer
        result = orjson.loads(answer.partition(b"\r\n\r\n")[2])
        changed = self._model.answered(operation, decision, result)
        return response(200, changed) if decision.unprocessed else answer
