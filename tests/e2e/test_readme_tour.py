"""The README's tour and Python, run as printed on one stack: Python and REST agree, also after a reshard."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from domain.samples.users import User
from dynashard import Dynashard
from tests.e2e.local_process import ROOT, LocalProcess, checkout_for_loads
from tests.e2e.readme import Step, run_tour

pytestmark = pytest.mark.e2e

README = (ROOT / "README.md").read_text("utf-8")
PARTITION = {"tenant_id": "abc"}
LOADED = 1_000


def snippet() -> str:
    """Return the README's Python snippet."""
    shown: list[str] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    [found] = (code for code in shown if "Dynashard" in code)
    return found


@dataclass(frozen=True)
class Toured:
    """A stack on which the whole tour was taken, a load and a reshard included."""

    stack: LocalProcess
    steps: Sequence[tuple[Step, str]]


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toured]:
    data = tmp_path_factory.mktemp("readme") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOPOLOGY_LEASE_SECONDS", "1")
        patch.setenv("DATA_DIR", str(data))
        started = LocalProcess(data)
        try:
            patch.setenv("PORT", str(urlsplit(started.ready().url).port))
            patch.setenv("DYNAMODB_PORT", str(urlsplit(started.engine_url).port))
            yield Toured(started, run_tour(started.url, checkout_for_loads(data.with_name("checkout")), {}))
        finally:
            assert started.interrupt() == 0
            assert started.all_gone()


@pytest.fixture
def stack(toured: Toured) -> LocalProcess:
    return toured.stack


def test_each_command_of_the_tour_has_its_printed_answer(toured: Toured) -> None:
    documents = [(step, output) for step, output in toured.steps if step.document is not None]

    assert len(documents) >= 3
    for step, output in documents:
        assert json.loads(output) == step.document, "\n".join(step.command)


def ids_over_rest(stack: LocalProcess) -> set[str]:
    with closing(stack.client()) as client:
        seen: set[str] = set()
        asked: dict[str, Any] = {"limit": 1000}
        while True:
            page = client.get("/v1/users", params=asked).json()
            seen |= {item["id"] for item in page["items"]}
            if page["cursor"] is None:
                return seen
            asked["cursor"] = page["cursor"]


def test_the_snippet_lists_every_user_after_the_reshard_and_rest_reads_its_items(stack: LocalProcess) -> None:
    before = ids_over_rest(stack)
    space: dict[str, Any] = {}

    exec(compile(snippet(), "README.md", "exec"), space)  # noqa: S102 - as printed is the point

    ada = space["ada"]
    with closing(stack.client()) as client:
        shown = client.get(f"/v1/users/{ada.id}")
    space["db"].close()
    assert len(before) >= LOADED
    assert len(space["newest_first"]) == len(set(space["newest_first"]))
    assert set(space["newest_first"]) == before | {ada.id}
    assert space["everybody"] == len(before) + 1
    assert ada.id in {user.id for user in space["same_address"]}
    assert (shown.status_code, shown.json()["department"]) == (200, "engines")


def test_the_pages_python_runs_as_printed(stack: LocalProcess, capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    space: dict[str, Any] = {}

    for code in shown:
        exec(compile(code, "python.md", "exec"), space)  # noqa: S102 - as printed is the point

    assert stack.url
    assert len(shown) == 4
    assert space["ada"].id == "ada"
    assert len(capsys.readouterr().out.splitlines()) == 10


def test_a_listing_continues_in_python_and_over_rest_alike(stack: LocalProcess) -> None:
    asked: dict[str, Any] = {"order": "ordered", "limit": 300}
    everybody = sorted(ids_over_rest(stack))

    with Dynashard.local() as db, closing(stack.client()) as client:
        users = db.collection(User)
        first = client.get("/v1/users", params=asked).json()
        second = users.list(PARTITION, order="ordered", limit=300, cursor=first["cursor"])
        third = client.get("/v1/users", params={**asked, "cursor": second.cursor}).json()

    seen = [*(item["id"] for item in first["items"]), *(user.id for user in second.items)]
    assert [*seen, *(item["id"] for item in third["items"])] == everybody[:900]


def test_a_closed_connection_refuses_calls(stack: LocalProcess) -> None:
    assert stack.url
    with Dynashard.local() as db:
        users = db.collection(User)
        assert users.find({**PARTITION, "id": "nobody"}) is None

    with pytest.raises(Exception, match="closed"):
        users.find({**PARTITION, "id": "nobody"})


def test_without_a_stack_a_listing_cannot_continue_past_one_page(stack: LocalProcess, tmp_path: Path) -> None:
    with Dynashard.local({**os.environ, "DATA_DIR": str(tmp_path)}) as db:
        users = db.collection(User)
        assert stack.url
        with pytest.raises(Exception, match="set DATA_DIR to the folder of `make run`"):
            users.list(PARTITION, limit=10)
