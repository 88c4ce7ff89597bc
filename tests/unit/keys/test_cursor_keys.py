"""Signing keys and their rotation."""

from collections.abc import Callable

import boto3
import pytest
from moto import mock_aws

from dynashard.cursor_keys import CursorKeys, keys_in
from dynashard.errors import ConfigurationError, EngineUnavailableError
from dynashard_serving.backend import cursor_key_reader

pytestmark = pytest.mark.unit


class Secret:
    """A secret that can be rotated and counts how often it is read."""

    def __init__(self, *keys: str) -> None:
        self.keys = keys
        self.reads = 0
        self.lost = False

    def __call__(self) -> tuple[str, ...]:
        self.reads += 1
        if self.lost:
            raise EngineUnavailableError("Lost.", operation="GetSecretValue")
        return self.keys


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _keys(read: Callable[[], tuple[str, ...]]) -> tuple[CursorKeys, Clock]:
    clock = Clock()
    return CursorKeys(read, clock), clock


def test_the_secret_is_read_once_and_cached() -> None:
    secret = Secret("a")
    keys, clock = _keys(secret)

    assert keys.current() == ("a",)
    clock.now += 899
    assert keys.current() == ("a",)
    assert secret.reads == 1


def test_a_rotated_secret_is_read_after_the_lifetime_of_the_old_one() -> None:
    secret = Secret("a")
    keys, clock = _keys(secret)
    keys.current()
    secret.keys = ("b", "a")

    clock.now += 900

    assert keys.current() == ("b", "a")


def test_an_unknown_key_causes_another_read_but_not_at_once() -> None:
    secret = Secret("a")
    keys, clock = _keys(secret)
    keys.current()
    secret.keys = ("b", "a")

    assert keys.after_unknown_key() == ("a",)
    clock.now += 60
    assert keys.after_unknown_key() == ("b", "a")
    assert keys.after_unknown_key() == ("b", "a")
    assert secret.reads == 2


def test_known_keys_are_kept_while_the_secret_cannot_be_read() -> None:
    secret = Secret("a")
    keys, clock = _keys(secret)
    keys.current()
    secret.lost = True

    clock.now += 900
    kept = keys.current()
    secret.lost, secret.keys = False, ("b", "a")
    clock.now += 900

    assert (kept, keys.current()) == (("a",), ("b", "a"))


def test_a_secret_that_was_never_read_is_missing() -> None:
    secret = Secret("a")
    secret.lost = True
    keys, _ = _keys(secret)

    with pytest.raises(EngineUnavailableError):
        keys.current()


def test_nothing_is_read_before_it_is_needed() -> None:
    secret = Secret("a")

    _keys(secret)

    assert secret.reads == 0


def test_keys_of_the_environment_are_used_as_they_are() -> None:
    assert cursor_key_reader(("a", "b"), None)() == ("a", "b")


@pytest.mark.parametrize(
    ("secret", "keys"),
    [
        ('{"keys": ["new", "old"]}', ("new", "old")),
        ('{"current": "new", "previous": ["old", "older"]}', ("new", "old", "older")),
        ('{"current": "new"}', ("new",)),
    ],
)
def test_the_secret_has_the_newest_key_first(secret: str, keys: tuple[str, ...]) -> None:
    assert keys_in(secret) == keys


@pytest.mark.parametrize(
    "secret",
    [
        *("", "key", "[]", "{}", '{"keys": []}', '{"keys": "a"}', '{"keys": [1]}', '{"keys": [""]}'),
        *('{"previous": ["a"]}', '{"current": "a", "previous": "b"}', '{"current": "", "previous": []}'),
    ],
)
def test_a_malformed_secret_is_refused(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="secret"):
        keys_in(secret)


def test_secret_is_read_from_secrets_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        stored = boto3.client("secretsmanager").create_secret(
            Name="cursor-keys", SecretString='{"current": "new", "previous": ["old"]}'
        )
        read = cursor_key_reader((), stored["ARN"])

        keys = read()
        boto3.client("secretsmanager").put_secret_value(
            SecretId=stored["ARN"], SecretString='{"current": "newest", "previous": ["new", "old"]}'
        )
        rotated = read()

    assert (keys, rotated) == (("new", "old"), ("newest", "new", "old"))


def test_a_secret_that_cannot_be_read_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:none-abcdef"

    with mock_aws(), pytest.raises(EngineUnavailableError, match="cursor keys"):
        cursor_key_reader((), arn)()
