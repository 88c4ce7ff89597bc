"""Random answers: no crash, no wrong answer, and a fault in the transport is found."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dynashard.transport.direct.exchange import Exchange
from dynashard.transport.direct.http1 import Answer, AnswerParser
from dynashard.transport.wire_format import parsed_answer
from dynashard_checks.fuzz_answers import Fuzzer, main
from tests.depth import examples

pytestmark = pytest.mark.unit

DEEP = 6_000
MUTANT_CALLS = 1_000


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Drop the log lines of botocore's transport, which writes one for each odd header."""
    caplog.set_level(logging.CRITICAL, "urllib3")


def test_no_random_answer_is_misunderstood() -> None:
    fuzzer = Fuzzer(1)

    for number in range(examples(DEEP)):
        fuzzer.call(number)

    assert fuzzer.report.failures == []
    kinds = {outcome.partition(":")[0] for outcome in fuzzer.report.outcomes}
    assert kinds >= {"whole", "cut", "pipelined", "odd headers", "damaged", "garbage", "not sent"}


def without_checksum(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    return parsed_answer(status, {name: text for name, text in headers.items() if name != "x-amz-crc32"}, body)


def always_clean(parser: AnswerParser, body: bytes, *, clean: bool, answer: Any = AnswerParser._answer) -> Any:
    del clean
    return answer(parser, body, clean=True)


def forgotten(exchange: Exchange) -> memoryview:
    return exchange._unsent


def taken_when_closed(exchange: Exchange, data: bytes, received: Any = Exchange.received) -> Any:
    return received(exchange, data) if data else Answer(200, {"content-length": "0"}, b"", reusable=False)


@pytest.mark.parametrize(
    ("place", "mutant", "found"),
    [
        ("dynashard.transport.direct.sending.parsed_answer", without_checksum, "another body"),
        ("dynashard.transport.direct.http1.AnswerParser._answer", always_clean, "stray bytes"),
        ("dynashard.transport.direct.exchange.Exchange.unsent", forgotten, "unsent"),
        ("dynashard.transport.direct.exchange.Exchange.received", taken_when_closed, "a close is taken"),
        ("dynashard.transport.direct.http1._SINGLE", frozenset(), "on botocore's transport"),
    ],
    ids=["checksums ignored", "stray bytes ignored", "writing forgotten", "a close completes", "two lengths accepted"],
)
def test_a_fault_in_the_transport_is_found(
    monkeypatch: pytest.MonkeyPatch, place: str, mutant: Callable[..., Any] | frozenset[str], found: str
) -> None:
    monkeypatch.setattr(place, mutant)
    fuzzer = Fuzzer(0)

    number = 0
    while not any(found in failure for failure in fuzzer.report.failures) and number < MUTANT_CALLS:
        fuzzer.call(number)
        number += 1

    assert number < MUTANT_CALLS


def test_the_command_ends_with_1_if_an_answer_is_misunderstood(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--answers", "50", "--alone"]) == 0
    assert "0 wrong" in capsys.readouterr().out

    monkeypatch.setattr("dynashard.transport.direct.sending.parsed_answer", without_checksum)

    assert main(["--answers", "5000", "--alone"]) == 1
    assert "wrong: call" in capsys.readouterr().out
