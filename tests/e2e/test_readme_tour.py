"""The README's tour and Python, run as printed on one stack: Python and REST agree, also after a reshard."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from domain.samples.users import User
from dynashard import Dynashard
from tests.e2e.local_process import ROOT, LocalProcess, checkout_for_loads
from tests.e2e.typed_page import Reader

pytestmark = pytest.mark.e2e

README = (ROOT / "README.md").read_text("utf-8")
PARTITION = {"tenant_id": "abc"}
LOADED = 1_000
WAITING = "for n in 1 2 3; do curl -s -o /dev/null $API/incidents/i$n -H \"$AUTH\" -H 'Prefer: wait=5'; done"
REPEATED = (
    "for n in 1 2 3; do until curl -s -o /dev/null -D - $API/incidents/i$n -H \"$AUTH\" -H 'Prefer: wait=10'"
    " | grep -qi '^preference-applied: wait=10'; do :; done; done"
)
INSTEAD = {WAITING: REPEATED}
"""Requests that wait for copies are sent again, because on a busy machine copies may take longer than one wait."""


def snippet() -> str:
    """Return the README's Python snippet."""
    shown: list[str] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    [found] = (code for code in shown if "Dynashard" in code)
    return found


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Somebody who has typed the README in a checkout, its load and its reshard included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOPOLOGY_LEASE_SECONDS", "1")
        folder = checkout_for_loads(tmp_path_factory.mktemp("readme") / "checkout")
        with Reader(folder, sys.executable, checkout=ROOT, instead=INSTEAD) as reader:
            reader.read(ROOT / "README.md")
            yield reader


@pytest.fixture
def stack(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> LocalProcess:
    """The stack of the tour, which programs of this test find."""
    assert reader.stack is not None
    monkeypatch.setenv("TOPOLOGY_LEASE_SECONDS", "1")
    monkeypatch.setenv("DATA_DIR", str(reader.stack.data_dir))
    monkeypatch.setenv("PORT", str(urlsplit(reader.stack.url).port))
    monkeypatch.setenv("DYNAMODB_PORT", str(urlsplit(reader.stack.engine_url).port))
    return reader.stack


def test_the_tour_prints_what_the_readme_shows_and_incidents_go_on(reader: Reader) -> None:
    reader.read(ROOT / "docs/incidents.md")

    assert reader.replaced == INSTEAD.keys()


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
