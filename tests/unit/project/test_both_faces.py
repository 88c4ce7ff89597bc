"""Tests of collections, listings, batches and transactions run under both faces of the layer, as docs/async.md says.

A conftest brings the second face by an import that nothing in it uses, so that it is easily removed by mistake.
"""

from importlib import import_module

import pytest

from tests.engine.faces import face


@pytest.mark.parametrize("room", ["reads", "repository", "service"])
def test_tests_run_under_both_faces(room: str) -> None:
    assert import_module(f"tests.engine.{room}.conftest").face is face
