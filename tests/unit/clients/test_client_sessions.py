"""A client over direct invocation takes a `boto3.Session`, whose credentials and region sign its requests."""

from collections.abc import Callable

import boto3
import pytest

from dynashard_client import AsyncClient, Client, Item, Retries
from dynashard_client.errors import ConfigurationError, EngineUnavailableError
from dynashard_lab.bench.canned import Asked, Reply, canned_server
from tests.engine.clients.async_face import driven

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("other_credentials")]

SIGNING = "signs"
Open = Callable[..., Client]
FACES = pytest.mark.parametrize("opened", [Client.lambda_, lambda *a, **kw: driven(AsyncClient.lambda_(*a, **kw))],
                                ids=["sync", "async"])  # fmt: skip


class User(Item, path="users"):
    id: str


def session_of() -> boto3.Session:
    return boto3.Session(aws_access_key_id="SESSION", aws_secret_access_key=SIGNING, region_name="eu-west-1")


class Function:
    """A function at Lambda's address, which answers every request alike, and what it was sent."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        return self._reply

    @property
    def signed(self) -> list[str]:
        """The key, region and service of each request."""
        scopes = [each.headers["authorization"].partition("Credential=")[2].split("/") for each in self.asked]
        return [" ".join((scope[0], *scope[2:4])) for scope in scopes]


@FACES
def test_requests_are_signed_with_the_credentials_and_the_region_of_a_session(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = Function(Reply(b'{"ok": true, "result": {"id": "ada", "revision": "1"}}'))

    with canned_server(function) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", url)
        with opened("commands", tenant="abc", session=session_of()) as client:
            found = client.collection(User).get("ada")

    assert found.id == "ada"
    assert function.signed == ["SESSION eu-west-1 lambda"]


def test_the_client_of_a_session_leaves_retries_to_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    function = Function(Reply(status=500))

    with canned_server(function) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", url)
        with (
            Client.lambda_("commands", tenant="abc", session=session_of(), retries=Retries(attempts=1)) as client,
            pytest.raises(EngineUnavailableError),
        ):
            client.collection(User).get("ada")

    assert len(function.asked) == 1


@FACES
def test_a_session_and_a_client_are_refused_together(opened: Open) -> None:
    with pytest.raises(ConfigurationError, match="give client= or session=, not both"):
        opened("commands", tenant="abc", session=session_of(), client=object())
