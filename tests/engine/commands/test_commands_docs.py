"""The requests and answers that docs/invoking.md shows are those that the function takes and gives."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynashard.transport import Transport
from tests.engine.commands.commands_on_engine import Service, commands_on

pytestmark = pytest.mark.engine

PAGE = (Path(__file__).parents[3] / "docs" / "invoking.md").read_text()
SHOWN = "\n".join(re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
ADA = {"id": "ada", "email": "ada@example.com", "display_name": "Ada"}
REQUESTS = 5


def documents() -> Iterator[dict[str, Any]]:
    """The requests and answers in their order; what an answer leaves out is left out."""
    decoder, text = json.JSONDecoder(), SHOWN.replace("..., ", "").lstrip()
    while text:
        document, end = decoder.raw_decode(text)
        yield document
        text = text[end:].lstrip()


def test_the_documented_answers_are_those_given(transport: Transport, table: str) -> None:
    commands = commands_on(transport, table)
    created = Service(commands).result("create", item=ADA)
    asked = 0
    # The last answer is of no request that is shown: of the one that its text describes.
    answer = {}
    for document in documents():
        if "operation" in document:
            asked += 1
            answer = commands.answer(document)
            assert answer["ok"] or document["key"] == {"id": "nobody"}
        elif document["ok"]:
            shown = {**document["result"], "revision": created["revision"]}
            assert shown.items() <= dict(answer["result"]).items()
        elif "errors" in document["error"]:
            refusal = Service(commands).error("create", item={"email": "no address"})
            assert refusal == document["error"]
        else:
            assert json.loads(json.dumps(answer)) == document

    assert asked == REQUESTS
