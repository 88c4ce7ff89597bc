"""A request for which there is no connection was certainly not sent, so it is sent again, and its outcome is known."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pytest
from botocore.config import Config
from botocore.exceptions import CredentialRetrievalError
from botocore.session import get_session

from dynashard_client import AsyncClient, Client, Item, Retries
from dynashard_client.errors import EngineUnavailableError, OutcomeUnknownError

pytestmark = pytest.mark.unit

Call = Callable[[Any], Any]
Pauses = list[float]


class User(Item, path="users"):
    id: str


CALLS: Mapping[str, Call] = {
    "get": lambda users: users.get("ada"),
    "put": lambda users: users.put(User(id="ada")),
    "update": lambda users: users.update("ada", {"name": "Ada"}),
    "delete": lambda users: users.delete("ada"),
}


class WithoutCredentials:
    """A client of Lambda whose provider of credentials does not answer."""

    def invoke(self, **_request: Any) -> NoReturn:
        raise CredentialRetrievalError(provider="sso", error_msg="no answer")

    def close(self) -> None:
        """Do nothing: there is no connection."""


def nowhere() -> str:
    """Return the URL of a port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def over_rest(call: Call, pauses: Pauses) -> None:
    with Client.rest(nowhere(), token="t", retries=Retries(sleep=pauses.append)) as client:  # noqa: S106
        call(client.collection(User))


def over_rest_on_a_loop(call: Call, pauses: Pauses) -> None:
    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    async def called() -> None:
        async with AsyncClient.rest(nowhere(), token="t", retries=Retries(sleep_async=noted)) as client:  # noqa: S106
            await call(client.collection(User))

    asyncio.run(called())


def over_lambda(call: Call, pauses: Pauses) -> None:
    client = get_session().create_client(
        "lambda",
        region_name="eu-west-1",
        endpoint_url=nowhere(),
        aws_access_key_id="a",
        aws_secret_access_key="b",  # noqa: S106
        config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
    )
    invoked(client, call, pauses)


def without_credentials(call: Call, pauses: Pauses) -> None:
    invoked(WithoutCredentials(), call, pauses)


def invoked(function: Any, call: Call, pauses: Pauses) -> None:
    with Client.lambda_("f", tenant="abc", client=function, retries=Retries(sleep=pauses.append)) as client:
        call(client.collection(User))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("way", [over_rest, over_rest_on_a_loop, over_lambda, without_credentials])
def test_what_was_not_sent_is_sent_again_and_not_in_doubt(way: Callable[[Call, Pauses], None], call: Call) -> None:
    pauses: Pauses = []

    with pytest.raises(EngineUnavailableError, match="nothing was done") as caught:
        way(call, pauses)

    assert not isinstance(caught.value, OutcomeUnknownError)
    assert caught.value.retryable
    assert len(pauses) == Retries().attempts - 1
