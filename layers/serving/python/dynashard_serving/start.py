"""The start of a function: imports without searches for unreachable cycles."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Run a block that imports, without searching for cycles of unreachable objects.

    Nearly all that imports make is kept, but each few hundred objects of it would start a search: 15 to 20% of the CPU
    time of a cold start. Afterwards the collector works as before, and never searches what the block has made.

    Pydantic does not search all installed packages for its plugins, unless `PYDANTIC_DISABLE_PLUGINS` is set.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
