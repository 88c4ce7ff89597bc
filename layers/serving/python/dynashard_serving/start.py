"""The start of a function: imports without searches, for unreachable cycles or for plugins."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

PLUGINS: Final = "PYDANTIC_DISABLE_PLUGINS"
"""Pydantic's own variable. If it is set, pydantic searches for plugins as usual."""
_LOADER: Final = "pydantic.plugin._loader"


@contextmanager
def uncollected() -> Iterator[None]:
    """Run a block that imports, without searching for cycles of unreachable objects or for plugins of pydantic.

    Nearly all that imports make is kept, but each few hundred objects of it would start a search: 15 to 20% of the CPU
    time of a cold start. Afterwards the collector works as before, and never searches what the block has made.
    """
    if PLUGINS not in os.environ:
        sys.modules.setdefault(_LOADER, _no_plugins())
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _no_plugins() -> ModuleType:
    """Return a module in place of the one that searches all installed packages for plugins of pydantic.

    To switch plugins off by the variable would still import that module, and with it the packages for metadata, mail
    and archives: a tenth of the CPU time of a cold start.
    """
    loader = ModuleType(_LOADER)
    loader.get_plugins = tuple  # type: ignore[attr-defined]
    return loader
