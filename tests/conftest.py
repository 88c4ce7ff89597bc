"""What holds for all tests."""

import gc
import os
from collections.abc import Generator

import pytest

from tests.depth import load_profile

load_profile()
# The synthesiser starts when it is imported.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from looking, again and again, at what stays until the end: modules and tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
