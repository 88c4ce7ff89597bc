"""What a check works with: clients of AWS, scratch resources, the deployed environment, and the time."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from botocore.exceptions import ClientError

from dynashard_checks.verify_aws.environment import Environment
from dynashard_checks.verify_aws.scratch import Scratch

ACCEPTED: Final = "accepted"
"""What comparisons show for a request that was not refused."""


class ClientFactory(Protocol):
    """Makes clients of AWS's services."""

    def __call__(self, service: str, *, retries: bool = True) -> Any:
        """Return boto3's client of a service; without retries it sends each request once."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time that passes: `now` in epoch seconds, and `sleep`."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Context:
    """What a check works with.

    Attributes:
        client: makes clients.
        scratch: creates tables and queues that are removed at the end.
        environment: the deployed environment.
        clock: the time.
        say: shows a line of progress.
    """

    client: ClientFactory
    scratch: Scratch
    environment: Environment
    clock: Clock = field(default=Clock())
    say: Callable[[str], None] = lambda _line: None

    def until(self, found: Callable[[], Any], *, seconds: float, every: float = 2.0) -> Any:
        """Return what `found` returns as soon as it is true; what it returned last if that takes too long."""
        end = self.clock.now() + seconds
        while not (result := found()) and self.clock.now() < end:
            self.clock.sleep(every)
        return result


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of AWS: its document, and the code and the message of an error; both are empty if it is none."""

    document: Mapping[str, Any]
    code: str = ""
    message: str = ""

    @property
    def result(self) -> str:
        """The code of the error, or `ACCEPTED`."""
        return self.code or ACCEPTED


def answer_of(call: Callable[..., Mapping[str, Any]], **request: Any) -> Answer:
    """Send a request, and return its answer, also if it is an error."""
    try:
        return Answer(call(**request))
    except ClientError as error:
        return Answer(error.response, str(error.response["Error"]["Code"]), str(error.response["Error"].get("Message")))
