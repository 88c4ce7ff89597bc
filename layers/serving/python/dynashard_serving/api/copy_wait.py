"""`Prefer: wait=5` (RFC 7240) on a single item: answer when its copies are current, or when the time is over.

Copies follow an item through the table's stream, about a second later. The shards of the stream advance separately, so
no position in it shows that all copies are current. Instead the copies of one item, which are in one logical
partition, are read and compared with the item.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from dynashard.errors import QueryTooWideError
from dynashard_serving.api.headers import preferences
from dynashard_serving.api.request import ApiRequest

if TYPE_CHECKING:
    from dynashard_patterns.copies.materializer import Materializer

MOST_SECONDS: Final = 10
"""The longest wait. The execution environment serves no other request meanwhile."""
TIME_SHARE: Final = 0.5
"""The part of the request's remaining time that the wait may use."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 0.5
_SECONDS: Final = re.compile(r"\d{1,9}")


class CopyWait:
    """Waits for the copies of an entity's items. `materializers` is called by each request that waits."""

    def __init__(
        self,
        materializers: Callable[[], "Sequence[Materializer]"],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._materializers = materializers
        self._clock = clock
        self._sleep = sleep

    def wait(self, incoming: ApiRequest, key: Mapping[str, Any]) -> Mapping[str, str]:
        """Wait for the copies of an item if its request prefers that.

        Returns:
            `Preference-Applied: wait=5` if the stored copies agree with the item, including every write to it that was
            acknowledged before this request; else no header. On AWS their indexes follow them within milliseconds.

        Cost: for each comparison, a consistent read of the item and a consistent Query of its copies.
        """
        seconds = _preferred(incoming) if "prefer" in incoming.headers else None
        if seconds is None:
            return {}
        most = min(seconds, MOST_SECONDS, incoming.seconds_left * TIME_SHARE)
        return {"Preference-Applied": f"wait={seconds}"} if self._until_current(key, most) else {}

    def _until_current(self, key: Mapping[str, Any], seconds: float) -> bool:
        """Wait until the copies are current, and return whether they are."""
        deadline, pause = self._clock() + seconds, FIRST_PAUSE
        # The item itself needs no Query, so it can be answered even if the wait has used up all of them.
        with suppress(QueryTooWideError):
            materializers = self._materializers()
            while not _current(materializers, key):
                left = deadline - self._clock()
                if left <= 0:
                    return False
                self._sleep(min(pause, left))
                pause = min(2 * pause, LONGEST_PAUSE)
            return True
        return False


def _current(materializers: "Sequence[Materializer]", key: Mapping[str, Any]) -> bool:
    return all(materializer.drift(key).total == 0 for materializer in materializers)


def _preferred(incoming: ApiRequest) -> int | None:
    """Return the seconds of the preference `wait`; None without one. RFC 7240 requires that others are ignored."""
    for name, value in preferences(incoming.headers):
        if name == "wait" and _SECONDS.fullmatch(value):
            return int(value)
    return None
