"""What the live mode has throttled in the last hour, as CloudWatch and contributor insights would show it."""

import re
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard_lab.simulate.model import TABLE, Access
from dynashard_lab.simulate.throttle import Throttle

PATH: Final = "/throttles"
"""Where the port of the live mode answers a GET with this, in JSON; `?seconds=60` looks back a minute."""
_REASON: Final = re.compile(r"(?:Table|Index)(Read|Write)(\w+)Exceeded")
_STEP: Final = 5.0
"""Seconds that one part of the log covers."""
_KEPT: Final = 720
_MOST_KEYS: Final = 1000
"""Partition keys, and items, of one part."""
_SHOWN: Final = 50

_Count = tuple[str | None, str, str]
"""The slot of an index, None for the table; `Read` or `Write`; and the limit."""
_Key = tuple[str | None, str, str | None]
"""The slot, the stored partition key, and the stored sort key; None in counts of whole partition keys."""


@dataclass(slots=True)
class _Part:
    step: int
    counts: Counter[_Count] = field(default_factory=Counter)
    keys: Counter[_Key] = field(default_factory=Counter)


class ThrottleLog:
    """Throttled requests by cause, and by key if a key range was the cause. Memory is bounded."""

    def __init__(self) -> None:
        self._parts: deque[_Part] = deque(maxlen=_KEPT)

    def add(self, now: float, throttle: Throttle, accesses: Iterable[Access]) -> None:
        """Count a throttled request with what it would have consumed."""
        step = int(now // _STEP)
        if not self._parts or self._parts[-1].step != step:
            self._parts.append(_Part(step))
        part = self._parts[-1]
        hot = set[tuple[str | None, str]]()
        for reason in throttle.reasons:
            found = _REASON.fullmatch(reason.reason)
            if found:
                part.counts[reason.index, found[1], found[2]] += 1
                hot |= {(reason.index, found[1])} if found[2] == "KeyRangeThroughput" else set()
        for access in accesses:
            slot = None if access.target == TABLE else access.target
            if (slot, "Read" if access.reading else "Write") in hot:
                _count(part.keys, (slot, access.hash_key, None))
                _count(part.keys, (slot, access.hash_key, access.sort_key))

    def summary(self, now: float, seconds: float) -> dict[str, Any]:
        """Return the throttles of the last seconds: their counts, and the most throttled keys."""
        counts, keys = Counter[_Count](), Counter[_Key]()
        for part in self._parts:
            if part.step * _STEP > now - seconds - _STEP:
                counts.update(part.counts)
                keys.update(part.keys)
        whole = Counter({key: events for key, events in keys.items() if key[2] is None})
        items = Counter({key: events for key, events in keys.items() if key[2] is not None})
        most = [*whole.most_common(_SHOWN), *items.most_common(_SHOWN)]
        return {
            "throttles": [[*key, events] for key, events in sorted(counts.items(), key=str)],
            "keys": [[*key, events] for key, events in most],
        }


def _count(keys: Counter[_Key], key: _Key) -> None:
    if key in keys or len(keys) < 2 * _MOST_KEYS:
        keys[key] += 1
