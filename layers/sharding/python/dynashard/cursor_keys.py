"""The keys that sign cursors: settings, or a secret in Secrets Manager that is read again as it rotates."""

import json
from collections.abc import Callable
from math import inf
from typing import Final

from dynashard.errors import ConfigurationError, EngineUnavailableError
from dynashard.transport.deadline import remaining
from dynashard.transport.forks import after_fork
from dynashard.waiting import Turn, in_thread

LIFETIME_SECONDS: Final = 900.0
"""The longest time for which keys are used without reading them again."""
REFRESH_SECONDS: Final = 60.0
"""The shortest time between two reads because of a cursor that the keys do not verify: forged ones cost little."""

Keys = tuple[str, ...]


class CursorKeys:
    """Signing keys, newest first, which `read` returns from where they are stored. Safe to share between threads."""

    def __init__(self, read: Callable[[], Keys], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._begin()
        after_fork(self, CursorKeys._begin)
        self._keys: Keys = ()
        self._read_at = 0.0

    def _begin(self) -> None:
        """Begin with a lock that nobody holds."""
        self._lock = Turn()

    def current(self) -> Keys:
        """Return the keys to use. Cost: reads them on first use and every 15 minutes."""
        return self._not_older_than(LIFETIME_SECONDS)

    def after_unknown_key(self) -> Keys:
        """Return the keys to try after those known did not verify a cursor. Cost: reads them, at most once a minute."""
        return self._not_older_than(REFRESH_SECONDS)

    def _not_older_than(self, seconds: float) -> Keys:
        left = remaining()
        if not self._lock.acquire(None if left == inf else left):
            # Known keys are better than no listings.
            if self._keys:
                return self._keys
            raise EngineUnavailableError(
                "Another call was still reading the cursor keys at the deadline of this one. Try again.",
                operation="GetSecretValue",
            )
        try:
            return self._read_again(seconds)
        finally:
            self._lock.release()

    def _read_again(self, seconds: float) -> Keys:
        now = self._clock()
        if not self._keys or now - self._read_at >= seconds:
            try:
                self._keys = in_thread(self._read)
            except EngineUnavailableError:
                # As above.
                if not self._keys:
                    raise
            self._read_at = now
        return self._keys


def keys_in(secret: str) -> Keys:
    """Return the keys in a secret: `{"keys": ["newest", "older"]}`, or `{"current": ..., "previous": [...]}`.

    CloudFormation can generate only the second form. A secret of neither form raises `ConfigurationError`.
    """
    try:
        document = json.loads(secret)
    except json.JSONDecodeError as error:
        raise ConfigurationError('The cursor secret is not JSON: store {"keys": ["newest", "older"]}') from error
    keys: object = None
    if isinstance(document, dict) and "keys" in document:
        keys = document["keys"]
    elif isinstance(document, dict) and isinstance(document.get("previous", []), list):
        keys = [document.get("current"), *document.get("previous", [])]
    return key_list(keys, "The cursor secret")


def key_list(keys: object, source: str) -> tuple[str, ...]:
    """Return signing keys that `source` holds; raises `ConfigurationError` unless they are a list of texts."""
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):
        raise ConfigurationError(f"{source} must hold a list of non-empty strings, newest key first")
    return tuple(keys)
