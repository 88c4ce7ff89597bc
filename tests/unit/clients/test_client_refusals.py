"""Clients raise each refusal of a backend as the layer's own error."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from domain import User
from dynashard import errors
from dynashard.errors import DynashardError
from dynashard_client import Client, Retries

pytestmark = pytest.mark.unit


def family(root: type[DynashardError]) -> Iterator[type[DynashardError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith(errors.__name__):
            yield from family(child)


class Refusing:
    """A client of Lambda whose function refuses every call with one code."""

    def __init__(self, **error: Any) -> None:
        self._error = error

    def invoke(self, **_request: Any) -> dict[str, Any]:
        return {"Payload": io.BytesIO(json.dumps({"ok": False, "error": self._error}).encode())}

    def close(self) -> None:
        """Do nothing: there is no connection."""


def raised(**error: Any) -> DynashardError:
    with Client.lambda_("f", tenant="abc", client=Refusing(**error), retries=Retries(attempts=1)) as client:
        with pytest.raises(DynashardError) as refused:
            client.collection(User).get({"id": "ada"})
        return refused.value


@pytest.mark.parametrize("known", [*family(DynashardError)], ids=lambda known: known.__name__)
def test_every_code_of_the_layer_is_raised_as_its_class(known: type[DynashardError]) -> None:
    error = raised(code=known.code, message="Why.", details={})

    assert type(error) is known
    assert error.code == known.code


def test_a_refused_transaction_says_which_step_and_why() -> None:
    error = raised(code="transaction_refused", message="Why.", details={"step": 1, "reason": "not_found"})

    assert error.details == {"step": 1, "reason": "not_found"}


def test_an_unknown_code_is_a_refusal_with_that_code() -> None:
    error = raised(code="of_tomorrow", message="Why.", retry_after=2)

    assert (error.code, error.retryable, str(error)) == ("of_tomorrow", True, "Why.")
