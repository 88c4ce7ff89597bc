"""What an attempt is after a failure: certainly not executed before a byte was handed out, ambiguous afterwards."""

import pytest

from dynashard.errors import EngineUnavailableError, OutcomeUnknownError
from dynashard.transport.classification import DAMAGED
from dynashard.transport.direct.exchange import Exchange
from dynashard_checks.answers import counted

pytestmark = pytest.mark.unit


def test_a_failure_before_the_first_byte_is_certainly_not_executed() -> None:
    error = Exchange("PutItem", b"request").broken(ConnectionResetError("reset"))

    assert type(error) is EngineUnavailableError
    assert "was not sent" in str(error)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (BrokenPipeError("pipe"), "ConnectionClosedError"),
        (ConnectionResetError("reset"), "ConnectionClosedError"),
        (TimeoutError("slow"), "ReadTimeoutError"),
    ],
)
@pytest.mark.parametrize("written", [0, 3, 7])
def test_a_failure_after_bytes_were_handed_out_is_ambiguous(failure: OSError, code: str, written: int) -> None:
    exchange = Exchange("PutItem", b"request")
    exchange.unsent()
    exchange.wrote(written)

    error = exchange.broken(failure)

    assert type(error) is OutcomeUnknownError
    assert error.aws_code == code


def test_a_read_that_fails_is_unavailability() -> None:
    exchange = Exchange("GetItem", b"request")
    exchange.unsent()

    assert type(exchange.broken(ConnectionResetError("reset"))) is EngineUnavailableError


def test_bytes_are_handed_out_until_all_are_written() -> None:
    exchange = Exchange("GetItem", b"request")

    assert bytes(exchange.unsent()) == b"request"
    exchange.wrote(4)
    assert bytes(exchange.unsent()) == b"est"
    exchange.wrote(3)
    assert not exchange.unsent()


def test_a_close_before_the_answer_is_complete_is_ambiguous() -> None:
    exchange = Exchange("PutItem", b"request")
    exchange.unsent()

    assert exchange.received(counted()[:-1]) is None
    with pytest.raises(OutcomeUnknownError) as caught:
        exchange.received(b"")

    assert caught.value.aws_code == "ConnectionClosedError"


def test_a_malformed_answer_is_ambiguous() -> None:
    exchange = Exchange("PutItem", b"request")
    exchange.unsent()

    with pytest.raises(OutcomeUnknownError) as caught:
        exchange.received(b"SSH-2.0\r\n\r\n")

    assert caught.value.aws_code == DAMAGED
