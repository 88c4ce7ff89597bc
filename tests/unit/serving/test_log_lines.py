"""The line that each function leaves in its log for a request, a write or a record."""

import json
from io import StringIO

import pytest

from dynashard.errors import ConfigurationError
from dynashard_serving.settings import flag
from dynashard_serving.telemetry.log_text import line_text, loggable
from dynashard_serving.telemetry.powertools import open_logger

pytestmark = pytest.mark.unit

ABOUT = {"request_id": "r-1", "tenant": "abc", "item": "users/ada", "caller": "eve", "revision": "R", "code": None}


def test_a_line_has_the_members_that_every_function_shares() -> None:
    written = StringIO()

    open_logger("test-of-lines", written).info("write", extra=loggable(ABOUT, item_keys=True))

    line = json.loads(written.getvalue())
    assert line.pop("timestamp").count(":") == 2
    assert line.pop("location").startswith("test_a_line")
    assert line == {
        "level": "INFO",
        "message": "write",
        "service": "test-of-lines",
        "request_id": "r-1",
        "tenant": "abc",
        "item": "users/ada",
        "caller": "eve",
        "revision": "R",
    }


def test_without_keys_a_line_names_neither_item_nor_caller() -> None:
    assert loggable(ABOUT, item_keys=False).keys() == {"request_id", "tenant", "revision"}


def test_half_a_surrogate_pair_is_escaped() -> None:
    assert json.loads(line_text({"item": "users/\ud800"})) == {"item": "users/\\ud800"}


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_the_switch_is_true_or_false(text: str, value: bool) -> None:  # noqa: FBT001
    assert flag("LOG_ITEM_KEYS", text) is value


def test_another_word_for_the_switch_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="LOG_ITEM_KEYS is 'no': use true or false"):
        flag("LOG_ITEM_KEYS", "no")
