"""The logs of functions: one line for an expected error, a traceback for all others."""

import json
import traceback
from io import StringIO

import pytest
from aws_lambda_powertools.logging import Logger

from dynashard.errors import QueueUnavailableError, ThrottledError
from dynashard_serving.telemetry.powertools import log_error, open_logger, without_traceback

pytestmark = pytest.mark.unit


@pytest.fixture
def log() -> StringIO:
    return StringIO()


@pytest.fixture
def logger(log: StringIO, request: pytest.FixtureRequest) -> Logger:
    return open_logger(request.node.name, log)


def throttled() -> ThrottledError:
    return ThrottledError("DynamoDB throttled\nPutItem.", operation="PutItem", aws_code="ThrottlingException")


def test_an_expected_error_is_one_line_without_a_traceback(log: StringIO, logger: Logger) -> None:
    with pytest.raises(ThrottledError) as raised:
        raise throttled()

    log_error(logger, "the request failed", raised.value, message_id="m-1")

    line = json.loads(log.getvalue())
    wanted = {
        "level": "WARNING",
        "message": "the request failed",
        "error": "ThrottledError: DynamoDB throttled PutItem.",
        "code": "throttled",
        "message_id": "m-1",
    }
    assert wanted.items() <= line.items()
    assert "exception" not in line


def test_an_error_names_each_of_its_causes_once(log: StringIO, logger: Logger) -> None:
    first, second = (QueueUnavailableError("The queue did not take\neverything") for _ in range(2))
    second.__cause__, first.__cause__ = first, RuntimeError("the queue said\nAccessDenied")

    log_error(logger, "the request failed", second)

    line = json.loads(log.getvalue())
    assert line["error"] == (
        "QueueUnavailableError: The queue did not take everything, because of RuntimeError: the queue said AccessDenied"
    )
    assert "exception" not in line


def test_circular_causes_are_named_once(log: StringIO, logger: Logger) -> None:
    first, second = QueueUnavailableError("first"), QueueUnavailableError("second")
    first.__cause__, second.__cause__ = second, first

    log_error(logger, "the request failed", first)

    logged = json.loads(log.getvalue())["error"]
    assert logged == "QueueUnavailableError: first, because of QueueUnavailableError: second"


def test_an_unexpected_error_is_logged_with_its_traceback(log: StringIO, logger: Logger) -> None:
    with pytest.raises(ValueError, match="odd") as raised:
        raise ValueError("odd")

    log_error(logger, "the request failed", raised.value)

    line = json.loads(log.getvalue())
    assert (line["level"], line["error"], line["exception_name"]) == ("ERROR", "ValueError: odd", "ValueError")
    assert line["exception"].startswith("Traceback")


def test_a_function_fails_with_the_error_without_its_traceback() -> None:
    @without_traceback
    def entry(_event: object) -> None:
        called_by_entry()

    def called_by_entry() -> None:
        raise throttled() from KeyError("cause")

    with pytest.raises(ThrottledError, match="DynamoDB throttled") as raised:
        entry({})

    printed = "".join(traceback.format_exception(raised.value))
    assert "called_by_entry" not in printed
    assert "KeyError" not in printed


def test_an_unexpected_error_keeps_its_traceback_when_a_function_fails() -> None:
    @without_traceback
    def entry() -> None:
        deep()

    def deep() -> None:
        raise ValueError("odd")

    with pytest.raises(ValueError, match="odd") as raised:
        entry()

    assert "in deep" in "".join(traceback.format_exception(raised.value))
