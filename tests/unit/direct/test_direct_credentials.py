"""Credentials: where they come from, when they are refreshed, and that they are shown to nobody."""

import logging
import subprocess
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from types import SimpleNamespace

import pytest
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import CredentialRetrievalError

from dynashard.errors import ConfigurationError, EngineUnavailableError, OutcomeUnknownError
from dynashard.transport.deadline import within
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.direct.credentials import Credentials, ProviderCredentials, source_of
from dynashard.transport.direct.endpoint import endpoint_of
from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.interface import Call, Settings
from dynashard_lab.bench.canned import Reply, canned_server
from tests.no_threads import no_more_threads
from tests.waiting import HANG_SECONDS, until

pytestmark = pytest.mark.unit

LAMBDA = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "hidden-secret", "AWS_SESSION_TOKEN": "hidden-token"}


def test_explicit_keys_come_before_those_of_the_environment() -> None:
    settings = Settings(access_key="mine", secret_key="s", token="t")  # noqa: S106

    assert source_of(settings, LAMBDA)("GetItem") == Credentials("mine", "s", "t")


@pytest.mark.parametrize(
    ("environ", "token"),
    [
        (LAMBDA, "hidden-token"),
        ({**LAMBDA, "AWS_SECURITY_TOKEN": "older"}, "older"),
        ({**LAMBDA, "AWS_SESSION_TOKEN": ""}, None),
    ],
)
def test_the_environments_keys_are_used_as_botocore_uses_them(environ: dict[str, str], token: str | None) -> None:
    assert source_of(Settings(), environ)("GetItem") == Credentials("AKIA", "hidden-secret", token)


@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        (Settings(profile="work"), LAMBDA),
        (Settings(), {}),
        (Settings(), {"AWS_ACCESS_KEY_ID": "AKIA"}),
        (Settings(), {**LAMBDA, "AWS_CREDENTIAL_EXPIRATION": "2030-01-01T00:00:00Z"}),
    ],
    ids=["profile", "nothing", "half", "expiring"],
)
def test_everything_else_is_left_to_botocores_providers(settings: Settings, environ: dict[str, str]) -> None:
    assert isinstance(source_of(settings, environ), ProviderCredentials)


def test_the_keys_of_a_lambda_function_need_no_botocore() -> None:
    program = (
        "import sys, dynashard.transport\n"
        "transport = dynashard.transport.connect('http://127.0.0.1:1', 'eu-west-1', attempts=1)\n"
        "try: transport.call('GetItem', {})\n"
        "except Exception as error: print(type(error).__name__)\n"
        "assert not {'botocore', 'urllib3', 'http.client'} & set(sys.modules), sorted(sys.modules)\n"
    )

    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=LAMBDA
    )

    assert (done.stdout, done.stderr) == ("EngineUnavailableError\n", "")


class Provider:
    """A provider whose first credentials expire in a minute, and the next ones in an hour."""

    def __init__(self) -> None:
        self.fetched = 0
        self.fails = False

    def metadata(self) -> dict[str, str]:
        if self.fails:
            raise CredentialRetrievalError(provider="test", error_msg="no answer")
        self.fetched += 1
        expires = datetime.now(UTC) + (timedelta(minutes=1) if self.fetched == 1 else timedelta(hours=1))
        names = ("access_key", "secret_key", "token")
        return {**{name: f"{name}-{self.fetched}" for name in names}, "expiry_time": expires.isoformat()}

    def credentials(self) -> RefreshableCredentials:
        return RefreshableCredentials.create_from_metadata(self.metadata(), self.metadata, "test")


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    provider = Provider()
    session = SimpleNamespace(get_credentials=provider.credentials)
    monkeypatch.setattr("dynashard.transport.client.open_session", lambda _profile, _session: session)
    return provider


def test_credentials_of_a_provider_are_refreshed_before_they_expire(provider: Provider) -> None:
    source = ProviderCredentials(None)

    used = [source("GetItem") for _ in range(3)]

    # The first ones expire too soon, so they are refreshed before they are used at all.
    assert [each.access_key for each in used] == ["access_key-2"] * 3
    assert used[0] is used[2]
    assert provider.fetched == 2


def test_a_provider_that_does_not_answer_is_unavailability_and_nothing_is_sent(provider: Provider) -> None:
    provider.fails = True

    with pytest.raises(EngineUnavailableError, match="was not sent") as caught:
        ProviderCredentials(None)("PutItem")

    assert not isinstance(caught.value, OutcomeUnknownError)


def test_a_provider_that_is_slow_is_unavailability_at_the_deadline(provider: Provider) -> None:
    answers = Event()
    at_once = provider.metadata

    def slow() -> dict[str, str]:
        answers.wait()
        return at_once()

    provider.metadata = slow  # type: ignore[method-assign]
    source = ProviderCredentials(None)

    with within(0.05), pytest.raises(EngineUnavailableError, match="did not arrive by the operation's deadline"):
        source("PutItem")
    answers.set()

    assert source("PutItem").access_key == "access_key-2"
    assert provider.fetched == 2


def test_a_slow_provider_ends_many_requests_at_their_deadline(provider: Provider) -> None:
    answers = Event()

    def slow() -> dict[str, str]:
        answers.wait()
        return {}

    provider.metadata = slow  # type: ignore[method-assign]

    with canned_server(lambda _: Reply()) as url:
        settings = Settings(url, "eu-west-1", operation_seconds=0.2, attempts=1)
        transport = DirectTransport(settings, endpoint_of(settings, {}), ProviderCredentials(None))
        found = transport.try_all([Call("PutItem", {})] * 2)
        transport.close()
    answers.set()

    assert [type(each) for each in found] == [EngineUnavailableError] * 2


class Expiring:
    """A session whose credentials expire at a time. Their provider answers once `answers` is set."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)
        self.expires = self.now + timedelta(hours=1)
        self.fetched = 0
        self.answers = Event()

    def minutes_left(self, minutes: int) -> None:
        """Let time pass until they are valid for only so many minutes."""
        self.now = self.expires - timedelta(minutes=minutes)

    def credentials(self) -> RefreshableCredentials:
        return RefreshableCredentials("old", "secret", "token", self.expires, self._fetched, "test", lambda: self.now)

    def _fetched(self) -> dict[str, str]:
        self.fetched += 1
        self.answers.wait(HANG_SECONDS)
        later = (self.now + timedelta(hours=1)).isoformat()
        return {"access_key": "new", "secret_key": "secret", "token": "token", "expiry_time": later}


@pytest.fixture
def expiring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Expiring]:
    expiring = Expiring()
    session = SimpleNamespace(get_credentials=expiring.credentials)
    monkeypatch.setattr("dynashard.transport.client.open_session", lambda _profile, _session: session)
    yield expiring
    expiring.answers.set()


def test_a_slow_provider_holds_nobody_up_while_credentials_are_valid(expiring: Expiring) -> None:
    source = ProviderCredentials(None)
    source("GetItem")

    expiring.minutes_left(12)
    with within(60):
        assert [source("PutItem").access_key for _ in range(5)] == ["old"] * 5
    assert expiring.fetched == 1
    expiring.answers.set()
    until(lambda: source("PutItem").access_key == "new")

    assert expiring.fetched == 1


def test_a_slow_provider_is_waited_for_in_the_last_minutes(expiring: Expiring) -> None:
    source = ProviderCredentials(None)
    source("GetItem")

    expiring.minutes_left(9)
    with within(0.05), pytest.raises(EngineUnavailableError, match="did not arrive by the operation's deadline"):
        source("PutItem")
    expiring.answers.set()

    assert source("PutItem").access_key == "new"


def test_a_thread_that_cannot_be_started_leaves_valid_credentials_in_use(
    expiring: Expiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ProviderCredentials(None)
    source("GetItem")
    expiring.minutes_left(12)

    with monkeypatch.context() as full:
        full.setattr(Thread, "start", no_more_threads)
        assert source("PutItem").access_key == "old"


def test_a_thread_that_cannot_be_started_fails_one_request_which_is_not_sent(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ProviderCredentials(None)

    with monkeypatch.context() as full:
        full.setattr(Thread, "start", no_more_threads)
        with within(60), pytest.raises(EngineUnavailableError, match="can't start new thread"):
            source("PutItem")

    with within(60):
        assert source("PutItem").access_key == "access_key-2"
    assert provider.fetched == 2


def test_no_credentials_at_all_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    session = SimpleNamespace(get_credentials=lambda: None)
    monkeypatch.setattr("dynashard.transport.client.open_session", lambda _profile, _session: session)

    with pytest.raises(ConfigurationError, match="no AWS credentials"):
        ProviderCredentials(None)("GetItem")


@pytest.mark.parametrize("bad", ["hidden\r\nX-Injected: 1", "hidden value", "hidden\u00e9", "hidden\n"])
def test_credentials_that_cannot_be_sent_are_refused_and_not_shown(bad: str) -> None:
    for keys in (("AKIA", bad), (bad, "s"), ("AKIA", "s", bad)):
        with pytest.raises(ConfigurationError, match="line break") as caught:
            Credentials(*keys)
        assert "hidden" not in str(caught.value)


def test_secrets_are_in_no_repr_no_log_and_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with canned_server(lambda _: Reply(hang_up=True)) as url:
        transport = transport_for(Settings(url, "eu-west-1", attempts=1), LAMBDA)
        with pytest.raises(OutcomeUnknownError) as caught:
            transport.call("PutItem", {})
        transport.close()

    signer = transport._channel._writer._signer  # type: ignore[union-attr]
    shown = [repr(source_of(Settings(), LAMBDA)("GetItem")), repr(signer._derived), caplog.text]
    shown.append(repr(Settings(access_key="AKIA", secret_key="hidden", token="hidden")))  # noqa: S106 - a test's own
    shown += traceback.format_exception(caught.value)

    assert not any("hidden" in text for text in shown)
