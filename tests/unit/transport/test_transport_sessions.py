"""A connection may be opened by a `boto3.Session`: its credentials, region and profile are used."""

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.credentials import Credentials, DeferredRefreshableCredentials
from botocore.exceptions import ClientError

from dynashard import Dynashard, connect
from dynashard.errors import ConfigurationError, DynashardError, EngineError, EngineUnavailableError
from dynashard.transport import Transport, TransportName
from dynashard.transport.client import open_session
from dynashard_lab.bench.canned import Asked, Reply, canned_server

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("other_credentials")]

SECRET, TOKEN = "secret", "temporary"
BOTH = pytest.mark.parametrize("name", ["direct", "botocore"])


def session_of(key: str = "SESSION", token: str | None = None) -> boto3.Session:
    return boto3.Session(
        aws_access_key_id=key, aws_secret_access_key=SECRET, aws_session_token=token, region_name="eu-west-1"
    )


class Server:
    """What a server was sent."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        return Reply()

    @property
    def signed(self) -> list[str]:
        """The key and region of each request."""
        scopes = [each.headers["authorization"].partition("Credential=")[2].split("/") for each in self.asked]
        return [f"{scope[0]} {scope[2]}" for scope in scopes]


@BOTH
def test_requests_are_signed_with_the_credentials_and_the_region_of_a_session(name: TransportName) -> None:
    server = Server()

    with canned_server(server) as url:
        transport = connect(url, transport=name, session=session_of(token=TOKEN))
        transport.call("GetItem", {})
        transport.close()

    assert server.signed == ["SESSION eu-west-1"]
    assert server.asked[0].headers["x-amz-security-token"] == TOKEN


@BOTH
def test_an_explicit_region_comes_before_that_of_a_session(name: TransportName) -> None:
    server = Server()

    with canned_server(server) as url:
        transport = connect(url, "ap-south-1", transport=name, session=session_of())
        transport.call("GetItem", {})
        transport.close()

    assert server.signed == ["SESSION ap-south-1"]


class Refreshed:
    """A session whose credentials change while it is used, as those of a role do."""

    region_name, profile_name = "eu-west-1", "default"

    def __init__(self) -> None:
        self.credentials = Credentials("FIRST", "secret")

    def get_credentials(self) -> Credentials:
        return self.credentials


@BOTH
def test_credentials_that_a_session_refreshes_are_used(name: TransportName) -> None:
    server, session = Server(), Refreshed()

    with canned_server(server) as url:
        transport = connect(url, transport=name, session=session)
        transport.call("GetItem", {})
        session.credentials.access_key = "SECOND"
        transport.call("GetItem", {})
        transport.close()

    assert server.signed == ["FIRST eu-west-1", "SECOND eu-west-1"]


class Assuming:
    """A session whose role cannot be assumed: the service of credentials refuses."""

    region_name, profile_name = "eu-west-1", "default"

    def __init__(self, status: int, code: str) -> None:
        self.answer: Any = {
            "Error": {"Code": code, "Message": "no"},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}},
        }

    def assume(self) -> dict[str, str]:
        raise ClientError(self.answer, "AssumeRole")

    def get_credentials(self) -> Credentials:
        return DeferredRefreshableCredentials(self.assume, "assume-role")


@BOTH
@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (403, "AccessDenied", ConfigurationError),
        (400, "Throttling", EngineUnavailableError),
        (500, "InternalFailure", EngineUnavailableError),
    ],
)
def test_a_role_that_cannot_be_assumed_leaves_no_doubt_about_a_write(
    name: TransportName, status: int, code: str, expected: type[DynashardError]
) -> None:
    server = Server()

    with canned_server(server) as url:
        transport = connect(url, transport=name, session=Assuming(status, code), attempts=1)
        with pytest.raises(expected, match="AssumeRole") as raised:
            transport.call("PutItem", {})
        transport.close()

    assert type(raised.value) is expected
    assert server.asked == []


def test_a_session_brings_its_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    (tmp_path / "config").write_text("[profile ours]\nregion = eu-north-1\nca_bundle = ours.pem\n")
    session = boto3.Session(profile_name="ours")

    opened = open_session(None, session)

    assert opened.profile == "ours"
    assert opened.get_config_variable("ca_bundle") == "ours.pem"


@pytest.mark.parametrize("more", [{"profile": "ours"}, {"access_key": "a", "secret_key": "b"}], ids=["profile", "keys"])
def test_a_session_has_no_other_credentials_beside_it(more: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="A session has its own credentials"):
        connect("http://localhost:1", session=session_of(), **more)  # type: ignore[arg-type]


def test_a_dynashard_on_a_session_opens_and_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()

    with canned_server(server) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        with Dynashard(
            session_of(), table="t", topology_table="u", cursor_keys=["long enough for a cursor key"], growth="off"
        ) as db:
            transport: Transport = db.store.transport
            transport.call("GetItem", {})

    assert server.signed == ["SESSION eu-west-1"]
    with pytest.raises(EngineError, match="closed"):
        transport.call("GetItem", {})
