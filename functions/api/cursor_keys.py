"""The keys that sign the API's cursors."""

from collections.abc import Callable

from dynashard.hosting.cursor_keys import CursorKeys, Keys, cursor_key_reader, keys_in
from functions.api.settings import Settings

__all__ = ["CursorKeys", "Keys", "keys_in", "reader"]


def reader(settings: Settings) -> Callable[[], Keys]:
    """How the keys of these settings are read."""
    return cursor_key_reader(settings.cursor_keys, settings.cursor_secret_arn)
