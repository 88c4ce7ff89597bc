"""Sends requests at a rate, and counts what AWS admits and why it throttles the rest."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from dynashard_checks.verify_aws.context import Answer, Clock

WORKERS: Final = 64
ITEM_BYTES: Final = 10 * 1024
"""Items of 10 units each, so that a few hundred requests a second are more than a partition admits."""
ITEM_UNITS: Final = 10
_THROTTLES: Final = frozenset({"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"})


@dataclass
class Traffic:
    """What was sent, and what came of it.

    Attributes:
        rate: requests a second that were due.
        seconds: how long they were sent.
        by_second: how many were admitted in each second.
        sent: how many were sent.
        throttled: how many were throttled.
        reasons: how often each reason came, with the ARN of the resource.
        unexplained: throttles without a reason.
        errors: how often each other error came.
    """

    rate: float
    seconds: int
    by_second: list[int] = field(default_factory=list)
    sent: int = 0
    throttled: int = 0
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    unexplained: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def sent_rate(self) -> float:
        """The requests a second that were really sent."""
        return self.sent / self.seconds

    @property
    def settled_rate(self) -> float:
        """The admitted requests a second of the last quarter."""
        last = self.by_second[len(self.by_second) * 3 // 4 :]
        return sum(last) / len(last) if last else 0.0

    def note(self, second: int, answer: Answer) -> None:
        """Count an answer to a request of a second."""
        self.sent += 1
        if not answer.code:
            self.by_second[second] += 1
        elif answer.code not in _THROTTLES:
            self.errors[answer.code] += 1
        else:
            self.throttled += 1
            found = reasons_of(answer)
            self.reasons.update(found)
            self.unexplained += not found


def reasons_of(answer: Answer) -> Sequence[tuple[str, str]]:
    """Return the reasons of a throttle, each with the ARN of its resource."""
    found = answer.document.get("ThrottlingReasons") or answer.document.get("throttlingReasons") or ()
    return [(str(each.get("reason", "")), str(each.get("resource", ""))) for each in found]


def send(
    request: Callable[[int], Answer], *, rate: float, seconds: int, clock: Clock, workers: int = WORKERS
) -> Traffic:
    """Send the numbers 0, 1, 2 ... at a rate, as evenly as this machine can.

    Args:
        request: sends the request of a number, once.
        rate: requests a second.
        seconds: for how long. What is not sent by then is left out.
        clock: the time.
        workers: requests that may be under way at once.
    """
    traffic = Traffic(rate, seconds, [0] * seconds)
    begun, lock, due = clock.now(), Lock(), iter(range(int(rate * seconds)))

    def work() -> None:
        while True:
            with lock:
                number = next(due, None)
            if number is None or clock.now() - begun >= seconds:
                return
            clock.sleep(max(0.0, begun + number / rate - clock.now()))
            answer = request(number)
            with lock:
                traffic.note(min(seconds - 1, int(clock.now() - begun)), answer)

    with ThreadPoolExecutor(workers, thread_name_prefix="verify-aws") as pool:
        for running in [pool.submit(work) for _ in range(workers)]:
            running.result()
    return traffic


def filler(used: int, size: int = ITEM_BYTES) -> dict[str, Any]:
    """Return the attribute that makes an item of `used` bytes one of `size` bytes."""
    return {"V": {"S": "x" * (size - used - len("V"))}}
