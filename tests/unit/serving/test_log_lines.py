"""The line that each function leaves in its log for a request, a write or a record."""

import json

import pytest

from dynashard.errors import ConfigurationError
from dynashard_serving.environment import flag
from dynashard_serving.log_lines import WRITER, LogLines

pytestmark = pytest.mark.unit

ABOUT = {"request_id": "r-1", "tenant": "abc", "item": "users/ada", "caller": "eve", "revision": "R", "code": None}


def test_a_line_has_the_members_that_every_function_shares() -> None:
    line = json.loads(LogLines(WRITER, item_keys=True).line("write", ABOUT, 1_795_262_400.5))

    assert line.pop("timestamp").partition(",")[2].startswith("500")
    assert line == {
        "level": "INFO",
        "message": "write",
        "service": "dynashard-writer",
        "request_id": "r-1",
        "tenant": "abc",
        "item": "users/ada",
        "caller": "eve",
        "revision": "R",
    }


def test_without_keys_a_line_names_neither_item_nor_caller() -> None:
    line = json.loads(LogLines(WRITER, item_keys=False).line("write", ABOUT, 0.0))

    assert line.keys() & ABOUT.keys() == {"request_id", "tenant", "revision"}


def test_half_a_surrogate_pair_is_escaped() -> None:
    line = json.loads(LogLines(WRITER, item_keys=True).line("write", {"item": "users/\ud800"}, 0.0))

    assert line["item"] == "users/\\ud800"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_the_switch_is_true_or_false(text: str, value: bool) -> None:  # noqa: FBT001
    assert flag("LOG_ITEM_KEYS", text) is value


def test_another_word_for_the_switch_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="LOG_ITEM_KEYS is 'no': use true or false"):
        flag("LOG_ITEM_KEYS", "no")
