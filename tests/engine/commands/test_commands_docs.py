"""The requests that docs/invoking.md shows have the answers that it shows."""

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
    """Yield the requests and answers in their order. Parts that the page leaves out are missing."""
    decoder, text = json.JSONDecoder(), SHOWN.replace("..., ", "").lstrip()
    while text:
        document, end = decoder.raw_decode(text)
        yield document
        text = text[end:].lstrip()


def test_the_documented_answers_are_those_given(transport: Transport, table: str) -> None:
    commands = commands_on(transport, table)
    created = Service(commands).result("create", item=ADA)
    asked = 0
    # The last answer belongs to a request that the page only describes.
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
