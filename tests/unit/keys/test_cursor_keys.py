"""Signing keys and their rotation."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import boto3
import pytest
from moto import mock_aws

from dynashard.awaiting.bridge import require_greenlet, run
from dynashard.cursor_keys import CursorKeys, keys_in
from dynashard.errors import ConfigurationError, EngineUnavailableError
from dynashard.transport.deadline import within
from dynashard_serving.backend import cursor_key_reader
from tests.bounded_waits import refuse_endless_waits
from tests.waiting import HANG_SECONDS

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

    clock.now += 59.5
    assert keys.after_unknown_key() == ("a",)
    clock.now += 0.5
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


class SlowSecret(Secret):
    """A secret whose reads do not end before the test says so, once it is slow."""

    def __init__(self, *keys: str, slow: bool) -> None:
        super().__init__(*keys)
        self.slow = slow
        self.reading, self.ended = Event(), Event()

    def __call__(self) -> tuple[str, ...]:
        if self.slow:
            self.reading.set()
            self.ended.wait(HANG_SECONDS)
        return super().__call__()


@contextmanager
def another_reads(keys: CursorKeys, secret: SlowSecret) -> Iterator[None]:
    """Let another thread read the secret for the time of the block."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(keys.current)
        secret.reading.wait(HANG_SECONDS)
        try:
            yield
        finally:
            secret.ended.set()
        assert other.result() == secret.keys


def in_time(keys: CursorKeys) -> tuple[str, ...]:
    with within(0.05):
        return keys.current()


async def in_time_on_a_loop(keys: CursorKeys) -> tuple[str, ...]:
    require_greenlet()
    return await run(in_time, keys)


WAYS = [in_time, lambda keys: asyncio.run(in_time_on_a_loop(keys))]


@pytest.mark.parametrize("ask", WAYS, ids=["thread", "task"])
def test_who_waits_for_the_read_of_another_ends_at_its_deadline(
    ask: Callable[[CursorKeys], tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_endless_waits(monkeypatch)
    secret = SlowSecret("a", slow=True)
    keys, _ = _keys(secret)

    with (
        another_reads(keys, secret),
        pytest.raises(EngineUnavailableError, match="still reading the cursor keys at the deadline"),
    ):
        ask(keys)

    assert ask(keys) == ("a",)
    assert secret.reads == 1


@pytest.mark.parametrize("ask", WAYS, ids=["thread", "task"])
def test_known_keys_are_used_at_the_deadline_while_another_call_reads_them_again(
    ask: Callable[[CursorKeys], tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_endless_waits(monkeypatch)
    secret = SlowSecret("a", slow=False)
    keys, clock = _keys(secret)
    keys.current()
    secret.keys, secret.slow = ("b", "a"), True
    clock.now += 900

    with another_reads(keys, secret):
        meanwhile = ask(keys)

    assert (meanwhile, ask(keys)) == (("a",), ("b", "a"))


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
