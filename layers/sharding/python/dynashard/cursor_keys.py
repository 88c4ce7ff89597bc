"""The keys that sign cursors: given by the environment, or kept in Secrets Manager and read again as they rotate."""

import json
from collections.abc import Callable
from threading import Lock
from typing import Final

from dynashard.errors import ConfigurationError, EngineUnavailableError
from dynashard.transport.aws import secret_reader

LIFETIME_SECONDS: Final = 900.0
"""After this a rotated secret is noticed by itself."""
REFRESH_SECONDS: Final = 60.0
"""How often an unknown key may have the secret read again."""

Keys = tuple[str, ...]


class CursorKeys:
    """Signing keys, newest first. Safe to share between threads.

    Args:
        read: reads them from where they are kept.
        clock: the time in seconds.
    """

    def __init__(self, read: Callable[[], Keys], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._lock = Lock()
        self._keys: Keys = ()
        self._read_at = 0.0

    def current(self) -> Keys:
        """The keys to use. Cost: reads them on first use and every 15 minutes."""
        return self._within(LIFETIME_SECONDS)

    def after_unknown_key(self) -> Keys:
        """The keys to try once more with, for a cursor these keys do not verify.

        Cost: reads them, but at most once a minute, so that forged cursors cannot make it expensive.
        """
        return self._within(REFRESH_SECONDS)

    def _within(self, seconds: float) -> Keys:
        with self._lock:
            now = self._clock()
            if not self._keys or now - self._read_at >= seconds:
                self._keys = self._renewed()
                self._read_at = now
            return self._keys

    def _renewed(self) -> Keys:
        try:
            return self._read()
        except EngineUnavailableError:
            if not self._keys:
                raise
            # Keys that were good a moment ago are better than no listings.
            return self._keys


def cursor_key_reader(keys: Keys, secret_arn: str | None) -> Callable[[], Keys]:
    """How signing keys are read.

    Args:
        keys: those that settings hold, newest first.
        secret_arn: the secret that holds them instead; see `keys_in`.
    """
    if secret_arn is None:
        return lambda: keys
    read = secret_reader(secret_arn, "cursor keys")
    return lambda: keys_in(read())


def keys_in(secret: str) -> Keys:
    """The keys in the text of a secret: `{"keys": ["newest", "older"]}`, or `{"current": ..., "previous": [...]}`.

    CloudFormation can generate only the second form.

    Raises:
        ConfigurationError: it is something else.
    """
    try:
        document = json.loads(secret)
    except json.JSONDecodeError as error:
        raise ConfigurationError('The cursor secret is no JSON: store {"keys": ["newest", "older"]}') from error
    keys: object = None
    if isinstance(document, dict) and "keys" in document:
        keys = document["keys"]
    elif isinstance(document, dict) and isinstance(document.get("previous", []), list):
        keys = [document.get("current"), *document.get("previous", [])]
    return key_list(keys, "The cursor secret")


def key_list(keys: object, source: str) -> tuple[str, ...]:
    """Check a decoded list of signing keys that `source` gave.

    Raises:
        ConfigurationError: it is no list of non-empty strings.
    """
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):
        raise ConfigurationError(f"{source} must hold a list of non-empty strings, newest key first")
    return tuple(keys)
