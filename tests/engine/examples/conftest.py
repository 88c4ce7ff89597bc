"""An engine of its own for the examples of a module, which name their tables, and a way to import them."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from dynashard_checks.schedules.wire import port_of_engine_in_memory

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def engine_variables() -> Iterator[Mapping[str, str]]:
    """Return the SDK's variables that lead to an empty engine; they are those of this process too."""
    with port_of_engine_in_memory() as port, pytest.MonkeyPatch.context() as patch:
        variables = {
            "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{port}",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
        }
        for name, value in variables.items():
            patch.setenv(name, value)
        yield variables


@pytest.fixture(scope="module")
def example(engine_variables: Mapping[str, str]) -> Callable[[str], Any]:
    """Return what imports an example by its name. An entity is declared once in a process, so each is imported once."""
    del engine_variables

    def imported(name: str) -> Any:
        if name not in sys.modules:
            spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
        return sys.modules[name]

    return imported
