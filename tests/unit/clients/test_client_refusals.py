"""Clients raise each refusal of a backend as the layer's own error."""

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.response import StreamingBody
from urllib3.exceptions import ProtocolError

from dynashard import errors as layer
from dynashard_client import Client, Item, Retries, errors
from dynashard_client.errors import CLASSES, DynashardError, EngineUnavailableError, OutcomeUnknownError

pytestmark = pytest.mark.unit


INSIDE = {
    "ConditionFailedError",
    "DeclarationError",
    "EventBusUnavailableError",
    "EventRefusedError",
    "ReshardRefusedError",
    "TopologyChangedError",
    "TransactionCanceledError",
}
"""Errors of the layer that no caller of a backend can act on: a client raises their codes as `RefusedError`."""


class User(Item, path="users"):
    id: str


Drawn = tuple[int, str, str, int]


def below(error: Any, depth: int = 0) -> Iterator[Drawn]:
    """Yield an error and all below it in its module: how deep, its name, code and status, by name."""
    yield depth, error.__name__, error.code, error.status
    for each in sorted(error.__subclasses__(), key=lambda each: str(each.__name__)):
        if each.__module__ == error.__module__:
            yield from below(each, depth + 1)


class Refusing:
    """A client of Lambda whose function refuses every call with one code."""

    def __init__(self, **error: Any) -> None:
        self._error = error

    def invoke(self, **_request: Any) -> dict[str, Any]:
        return {"Payload": io.BytesIO(json.dumps({"ok": False, "error": self._error}).encode())}

    def close(self) -> None:
        """Do nothing: there is no connection."""


class Cut:
    """A client of Lambda whose answer ends before its body is whole."""

    def __init__(self, body: Any) -> None:
        self._body = body
        self.invoked = 0

    def invoke(self, **_request: Any) -> dict[str, Any]:
        self.invoked += 1
        return {"Payload": self._body}

    def close(self) -> None:
        """Do nothing: there is no connection."""


class Reset:
    """A body that a reset connection interrupts."""

    def read(self, _amount: int | None = None) -> bytes:
        raise ProtocolError("reset")


@pytest.mark.parametrize(
    "body", [StreamingBody(Reset(), 10), StreamingBody(io.BytesIO(b'{"ok"'), 10)], ids=["reset", "short"]
)
def test_a_body_that_ends_early_is_no_answer(body: Any) -> None:
    function, twice = Cut(body), Retries(attempts=2, sleep=lambda _: None)
    with Client.lambda_("f", tenant="abc", client=function, retries=twice) as client:
        users = client.collection(User)
        with pytest.raises(OutcomeUnknownError, match="No answer came"):
            users.put(User(id="ada"))
        assert function.invoked == 1
        with pytest.raises(EngineUnavailableError, match="No answer came"):
            users.get("ada")

    assert function.invoked == 3


def raised(**error: Any) -> DynashardError:
    with Client.lambda_("f", tenant="abc", client=Refusing(**error), retries=Retries(attempts=1)) as client:
        with pytest.raises(DynashardError) as refused:
            client.collection(User).get({"id": "ada"})
        return refused.value


def test_the_errors_are_those_of_the_layer() -> None:
    theirs = [each for each in below(layer.DynashardError) if each[1] not in INSIDE]

    assert [each for each in below(DynashardError) if each[1] != "RefusedError"] == theirs


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = re.findall(r"^    ([│├└─ ]*)(\w+) +([a-z_]+) +(\d+)$", errors.__doc__ or "", re.MULTILINE)

    found = [(len(lines) // 4, name, code, int(status)) for lines, name, code, status in drawn]
    assert found == [*below(DynashardError)]


@pytest.mark.parametrize("known", CLASSES.values(), ids=lambda known: known.__name__)
def test_every_code_of_the_tree_is_raised_as_its_class(known: type[DynashardError]) -> None:
    error = raised(code=known.code, message="Why.", details={})

    assert type(error) is CLASSES[known.code]
    assert error.code == known.code


def test_a_refused_transaction_says_which_step_and_why() -> None:
    error = raised(code="transaction_refused", message="Why.", details={"step": 1, "reason": "not_found"})

    assert error.details == {"step": 1, "reason": "not_found"}


def test_an_unknown_code_is_a_refusal_with_that_code() -> None:
    error = raised(code="of_tomorrow", message="Why.", retry_after=2)

    assert (type(error), error.code, error.status) == (errors.RefusedError, "of_tomorrow", 500)
    assert (error.retryable, str(error)) == (True, "Why.")
