"""Many calls on one thread: requests are written to many sockets, and answers are read in the order of arrival.

Each call follows the rules of `dynashard.transport.attempts`; a pause before a retry holds up no other call, and takes
none of the places under way. While an answer is decoded, the others travel.
"""

import heapq
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dynashard.errors import DynashardError
from dynashard.transport.attempts import Attempts, RetryState
from dynashard.transport.deadline import remaining, within
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.nonblocking import PendingAttempt, Sockets, begin_attempt
from dynashard.transport.direct.sending import Channel, PreparedCall, prepare_call, read_answer
from dynashard.transport.interface import Call, Wire, record
from dynashard.transport.wire_format import require_remaining

_LONGEST_WAIT: Final = 60.0


@dataclass(slots=True)
class _Task:
    """One call: its place in the sequence, its attempts, and when its first one began."""

    at: int
    call: PreparedCall
    retries: RetryState
    began: float | None = None


class FanOut:
    """One run of many calls, over the sockets of its caller, who alone uses it."""

    def __init__(
        self, channel: Channel, attempts: Attempts, operation_seconds: float, concurrency: int, sockets: Sockets
    ) -> None:
        self._channel = channel
        self._attempts = attempts
        self._seconds = operation_seconds
        self._concurrency = max(1, concurrency)
        self._sockets = sockets
        self._ready: deque[_Task] = deque()
        self._paused: list[tuple[float, int, _Task]] = []
        self._under_way: dict[PendingAttempt, _Task] = {}
        self._answers: dict[int, Wire | DynashardError] = {}

    def run(self, calls: Sequence[Call]) -> list[Wire | DynashardError]:
        """Send every call; return the answers in the same order, with errors in the places of failed calls."""
        for at, call in enumerate(calls):
            try:
                made = prepare_call(*call)
            except DynashardError as error:
                self._answers[at] = error
            else:
                self._ready.append(_Task(at, made, RetryState(self._attempts, made.operation, made.resend)))
        try:
            while self._ready or self._paused or self._under_way:
                self._resume()
                self._launch()
                self._collect()
        finally:
            for attempt in self._under_way:
                attempt.abandon()
        return [self._answers[at] for at in range(len(calls))]

    def _resume(self) -> None:
        """Make ready what has paused for long enough; sleep first if nothing else is to be done."""
        if not self._paused:
            return
        runtime = self._attempts.runtime
        if not self._ready and not self._under_way:
            due, _, task = heapq.heappop(self._paused)
            runtime.sleep(max(0.0, due - runtime.monotonic()))
            self._ready.append(task)
        while self._paused and self._paused[0][0] <= runtime.monotonic():
            self._ready.append(heapq.heappop(self._paused)[2])

    def _launch(self) -> None:
        """Begin attempts, as many as may be under way and as there are connections."""
        while self._ready and len(self._under_way) < self._concurrency:
            task = self._ready[0]
            task.began = self._channel.clock() if task.began is None else task.began
            try:
                with within(self._left(task)):
                    require_remaining(task.call.operation)
                    # Others under way free a connection when their answers are read, which waiting here would prevent.
                    attempt = begin_attempt(self._channel, task.call, self._sockets, wait=not self._under_way)
            except DynashardError as error:
                self._ready.popleft()
                self._failed(task, error)
                continue
            if attempt is None:
                return
            self._ready.popleft()
            self._under_way[attempt] = task

    def _collect(self) -> None:
        """Wait until something happens, and advance the attempts that it concerns."""
        if not self._under_way:
            return
        completed: list[tuple[_Task, Answer]] = []
        for attempt, answer in self._sockets.collect(self._wait()):
            if isinstance(answer, DynashardError):
                self._failed(self._under_way.pop(attempt), answer)
            else:
                completed.append((self._under_way.pop(attempt), answer))
        self._expire()
        # The next requests leave before these answers are decoded.
        self._launch()
        for task, answer in completed:
            self._completed(task, answer)

    def _wait(self) -> float:
        """Return the seconds until an attempt expires or a pause ends."""
        first = min(attempt.expires for attempt in self._under_way) - time.monotonic()
        if self._paused:
            first = min(first, self._paused[0][0] - self._attempts.runtime.monotonic())
        return max(0.0, min(first, _LONGEST_WAIT))

    def _expire(self) -> None:
        now = time.monotonic()
        for attempt in [each for each in self._under_way if each.expires <= now]:
            try:
                attempt.time_out()
            except DynashardError as error:
                self._failed(self._under_way.pop(attempt), error)

    def _completed(self, task: _Task, answer: Answer) -> None:
        try:
            meant = read_answer(task.call.operation, answer, task.retries.number, task.call.reader)
        except DynashardError as error:
            self._failed(task, error)
            return
        self._attempts.quota.release(task.retries.number - 1)
        record(task.call.operation, meant)
        self._answers[task.at] = meant

    def _failed(self, task: _Task, error: DynashardError) -> None:
        """Let the call pause and try again, or end with an error."""
        try:
            with within(self._left(task)):
                pause = task.retries.pause_after(error)
        except DynashardError as final:
            self._answers[task.at] = final
            return
        heapq.heappush(self._paused, (self._attempts.runtime.monotonic() + pause, task.at, task))

    def _left(self, task: _Task) -> float:
        """Return the seconds that an operation has left: each call has its own, from its first attempt on."""
        now = self._channel.clock()
        return min(remaining(), self._seconds - (now - (now if task.began is None else task.began)))
