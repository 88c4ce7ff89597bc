"""`make run` reloads changed declarations: a copy of the checkout is edited while requests are sent."""

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from tests.e2e.local_process import ROOT, LocalProcess
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.e2e

USERS = "layers/domain/python/domain/samples/users.py"
CODE = ("functions", "layers", "packages", "stacks")
FILES = ("app.py", "cdk.json", "requirements", "pyproject.toml")
EMAIL = "    email: EmailAddress\n"
NICKNAME = "    nickname: str | None = None\n"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the checkout's code, with an interpreter that imports it and the installed packages."""
    root = tmp_path_factory.mktemp("reload") / "checkout"
    root.mkdir()
    for name in CODE:
        shutil.copytree(ROOT / name, root / name)
    for name in FILES:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, root / name)
    (root / "node_modules").symlink_to(ROOT / "node_modules")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)  # noqa: S603
    [packages] = (root / ".venv").glob("lib/python*/site-packages")
    own = [str(root), *map(str, [*root.glob("layers/*/python"), *root.glob("packages/*")])]
    # Without the links of the checkout that the tests run in: those in its own folder of packages are not followed.
    (packages / "checkout.pth").write_text("\n".join([*own, sysconfig.get_path("purelib")]))
    return root


@pytest.fixture
def stack(checkout: Path, tmp_path: Path) -> Iterator[LocalProcess]:
    original = (checkout / USERS).read_text()
    started = LocalProcess(
        tmp_path / "data", {"LOCAL_RELOAD": "on"}, checkout=checkout, python=str(checkout / ".venv/bin/python")
    )
    yield started.ready()
    (checkout / USERS).write_text(original)
    assert started.interrupt() == 0
    assert "Traceback" not in started.text
    assert started.all_gone()


def edit(checkout: Path, old: str, new: str, path: str = USERS) -> None:
    text = (checkout / path).read_text()
    assert text.count(old) == 1
    (checkout / path).write_text(text.replace(old, new))


def lines(stack: LocalProcess, beginning: str) -> list[str]:
    return [line.rstrip("\n") for line in stack.output if line.startswith(beginning)]


def user(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "email": f"{name}@example.com", "display_name": name, **more}


@contextmanager
def asking(client: httpx.Client, path: str) -> Iterator[list[int]]:
    """Send about twenty requests a second within the block, and collect the statuses."""
    statuses: list[int] = []
    ended = Event()

    def ask() -> None:
        while not ended.wait(0.05):
            statuses.append(client.get(path).status_code)

    thread = Thread(target=ask)
    thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        thread.join(HANG_SECONDS)


def test_a_new_field_is_served_and_a_wrong_declaration_is_not(stack: LocalProcess, checkout: Path) -> None:
    client = stack.client()
    assert client.post("/v1/users", json=user("ada", nickname="Countess")).status_code == 422
    assert client.post("/v1/users", json=user("ada")).status_code == 201

    with asking(stack.client(), "/v1/users/ada") as statuses:
        edit(checkout, EMAIL, EMAIL + NICKNAME)
        stack.once(lambda: len(lines(stack, "Reloaded")) == 1)
        created = client.post("/v1/users", json=user("grace", nickname="Amazing"))

        edit(checkout, "shards=Shards(16)", "shards=Shards(17)")
        stack.once(lambda: len(lines(stack, "Not reloaded")) == 1)
        while_wrong = client.get("/v1/users/grace")
        refused = client.post("/v1/users", json=user("alan", nickname="Prof", no_such_field=1))

        edit(checkout, "shards=Shards(17)", "shards=Shards(16)")
        stack.once(lambda: len(lines(stack, "Reloaded")) == 2)
        read_again = client.get("/v1/users/grace")

    assert created.status_code == 201
    assert created.json()["nickname"] == "Amazing"
    [line] = lines(stack, "Not reloaded")
    assert "DeclarationError: user.v1.User" in line
    assert "17" in line
    assert while_wrong.json() == read_again.json() == created.json()
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["no_such_field"]
    assert set(statuses) == {200}


@pytest.mark.deep
def test_workers_restart_with_the_new_code(stack: LocalProcess, checkout: Path) -> None:
    client = stack.client()
    before = stack.worker_process()

    edit(checkout, EMAIL, EMAIL + NICKNAME)
    stack.once(lambda: len(lines(stack, "Reloaded")) == 1)
    stack.once(lambda: before not in stack.processes())
    incident = {"id": "i1", "number": 1, "title": "x", "team": "team_1", "participants": ["team_1"]}
    created = client.post("/v1/incidents", json=incident)
    followed = client.get("/v1/incidents/i1", headers={"Prefer": "wait=25"})

    assert created.status_code == 201, created.text
    assert followed.status_code == 200
    assert stack.worker_process() != before
    assert not lines(stack, "local.")


@pytest.mark.deep
def test_a_change_that_tables_are_made_from_asks_for_a_restart(stack: LocalProcess, checkout: Path) -> None:
    with (checkout / "cdk.json").open("a") as file:
        file.write("\n")

    stack.once(lambda: len(lines(stack, "Run `make template` and restart `make run` to use cdk.json")) == 1)

    assert stack.client().get("/v1/users").status_code == 200
