"""A domain without the samples: every function and the command line start, and serve what one new file declares."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from tests.engine.command_line import CommandLine
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[3]
LAYERS = ("sharding", "patterns", "serving", "domain")
[PROJECTS] = re.findall(r"```python\n([^`]*class Project\([^`]*)```", (ROOT / "README.md").read_text())
"""The file of the README."""
EDGES = '''
"""Who likes what, and a read of its own."""

from pydantic import BaseModel

from dynashard import Dynashard
from dynashard_patterns import COUNT_KEY, EDGE_KEY, Edge, EdgeCount, Edges
from dynashard_serving.declare import ServedEdges, endpoint


class Like(Edge, name="like.v1.Like", key=EDGE_KEY): ...
class LikeCount(EdgeCount, name="like.v1.Count", key=COUNT_KEY): ...

LIKES = Edges(Like, forward="LIKES", backward="LIKED_BY", counts=LikeCount)
SERVED = ServedEdges(LIKES, path="likes", verb="like")


class Wanted(BaseModel):
    word: str
    times: int = 1


class Echo(BaseModel):
    """What was said."""

    tenant: str
    word: str


@endpoint(path="echoes")
def echoes(db: Dynashard, tenant_id: str, wanted: Wanted) -> list[Echo]:
    """Say it again."""
    return [Echo(tenant=tenant_id, word=wanted.word)] * wanted.times
'''
PROGRAM = """
import json, os, sys
from dynashard_local.functions.specs import api_environment
from dynashard_local.settings import Settings

os.environ.update(api_environment(Settings.from_env(os.environ)))
for name in ("QUEUE", "OPERATIONS_QUEUE"):
    os.environ.update({f"{name}_URL": "http://127.0.0.1:9/q", f"{name}_DEAD_LETTERS_URL": "http://127.0.0.1:9/d"})
os.environ["DEAD_LETTER_QUEUE_URL"] = os.environ["DEAD_LETTER_QUEUE"] = "http://127.0.0.1:9/d"
from functions.api.handler import handler as api
from functions.changes.handler import handler as changes
from functions.commands.handler import handler as commands
from functions.prewarm.handler import begin, step
from functions.reshard.handler import operate
from functions.writer.handler import handler as write

def http(method, path, body=None):
    path, _, query = path.partition("?")
    event = json.load(open("tests/events/get_user.json"))
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["rawQueryString"] = query
    event["requestContext"]["http"]["method"] = method
    event["requestContext"]["authorizer"]["jwt"]["claims"]["tenant_id"] = os.environ["TENANT"]
    if body is not None:
        event["headers"]["content-type"] = "application/json"
        event["body"] = json.dumps(body)
    answer = api(event, None)
    return [answer["statusCode"], json.loads(answer["body"]) if answer.get("body") else None]

do = {"http": http, "commands": lambda event: commands({"tenant_id": os.environ["TENANT"], **event}, None),
      "operate": lambda event: operate(event, None), "changes": lambda: changes({"Records": []}, None),
      "write": lambda: write({"Records": []}, None)}
answers = [do[name](*arguments) for name, *arguments in json.load(sys.stdin)]
sys.__stdout__.write("\\n" + json.dumps(answers) + "\\n")
"""
HELP = """
import json, sys
from dynashard_tools.cli import main
from dynashard_tools.catalog import COMMANDS

def commands(command, *names):
    yield names
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *names, name)

paths = [(), *(path for each in COMMANDS.values() for path in commands(each.load(), each.name))]
for path in paths:
    sys.argv = ["dynashard", *path, "--help"]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (path, ended.code)
sys.stdout.write("\\n" + json.dumps([" ".join(["dynashard", *path]) for path in paths]) + "\\n")
"""
"""The help of every registered command, from one process: its start takes most of the time of one."""


@dataclass(frozen=True)
class Adopter:
    """A copy of the layers whose domain has no samples, and processes that use it."""

    folder: Path
    environment: dict[str, str]

    def declare(self, name: str, code: str) -> None:
        """Write a file into the domain."""
        (self.folder / "domain/domain" / name).write_text(code)

    def do(self, *steps: Any) -> list[Any]:
        """Return what functions answer in a new process."""
        done = self._run(["-c", PROGRAM], json.dumps(steps))
        assert done.returncode == 0, done.stderr
        answers: list[Any] = json.loads(done.stdout.splitlines()[-1])
        return answers

    def command(self, *arguments: str) -> str:
        """Return what a command prints; it must succeed."""
        return self._printed("from dynashard_tools.cli import main; main()", *arguments)

    def help_of_all(self) -> tuple[list[str], str]:
        """Return every registered command, and the help of all of them."""
        *helps, names = self._printed(HELP).splitlines()
        return json.loads(names), "\n".join(helps)

    def _printed(self, program: str, *arguments: str) -> str:
        done = self._run(["-c", program, *arguments])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(self, arguments: list[str], given: str = "") -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join(str(self.folder / layer) for layer in LAYERS)
        return subprocess.run(  # noqa: S603 - this very interpreter
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, **self.environment, "PYTHONPATH": path},
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
        )


@pytest.fixture
def adopter(command_line: CommandLine, tmp_path: Path, tenant: str) -> Adopter:
    for layer in LAYERS:
        shutil.copytree(ROOT / "layers" / layer / "python", tmp_path / layer)
    shutil.rmtree(tmp_path / "domain/domain/samples")
    # The owner of this checkout may have entities besides the samples.
    for path in (tmp_path / "domain/domain").iterdir():
        if path.name != "__init__.py":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return Adopter(tmp_path, {**command_line.environment, "TENANT": tenant})


def test_a_domain_without_entities_starts_everything(adopter: Adopter) -> None:
    health, document, users, listed, unknown, operated, consumed, written = adopter.do(
        ("http", "GET", "/v1/health"),
        ("http", "GET", "/v1/openapi.json"),
        ("http", "GET", "/v1/users"),
        ("commands", {"operation": "list", "entity": "operations"}),
        ("commands", {"operation": "list", "entity": "users"}),
        ("operate", {"operation": "topology.show", "entity": "operations"}),
        ("changes",),
        ("write",),
    )

    assert (health[0], users[0], users[1]["code"]) == (200, 404, "no_such_route")
    validate(document[1])
    assert set(document[1]["paths"]) == {
        "/v1/health",
        "/v1/operations",
        "/v1/operations/batch",
        "/v1/operations/count",
        "/v1/operations/{id}",
    }
    assert listed == {"ok": True, "result": {"items": [], "cursor": None}}
    said = "no entity is called 'users'; there are operation.v1.Operation"
    assert unknown["error"]["message"] == said
    assert operated["ok"] is True
    assert consumed == written == {"batchItemFailures": []}


def test_the_command_line_of_a_domain_without_entities(adopter: Adopter) -> None:
    names, helps = adopter.help_of_all()
    assert {"dynashard", "dynashard load", "dynashard verify", "dynashard reshard start"} < set(names)
    assert [name for name in names if f"Usage: {name} " not in helps] == []
    assert "Load, inspect and operate" in helps
    assert "An entity: operations." in helps
    assert "sequences" not in helps
    tenant = adopter.environment["TENANT"]
    listed = adopter.command("list", "operations", f"tenant_id={tenant}", "--json")
    assert json.loads(listed) == {"items": [], "cursor": None}


def test_one_file_is_served_by_every_interface(adopter: Adopter) -> None:
    adopter.declare("projects.py", PROJECTS)
    created, document, read, updated, shown = adopter.do(
        ("http", "POST", "/v1/projects", {"id": "p1", "owner_id": "ada", "title": "Engine"}),
        ("http", "GET", "/v1/openapi.json"),
        ("commands", {"operation": "get", "entity": "projects", "key": {"id": "p1"}}),
        ("http", "GET", "/v1/projects?owner_id=ada"),
        ("operate", {"operation": "topology.show", "entity": "project.v1.Project"}),
    )

    assert (created[0], created[1]["title"]) == (201, "Engine")
    assert "/v1/projects/{id}" in document[1]["paths"]
    assert read["result"]["owner_id"] == "ada"
    assert [item["id"] for item in updated[1]["items"]] == ["p1"]
    assert shown["ok"] is True
    tenant = adopter.environment["TENANT"]
    assert '"Engine"' in adopter.command("get", "projects", f"tenant_id={tenant}", "id=p1")
    assert "0 found wrong" in adopter.command("verify", "projects", tenant)


def test_edges_and_a_read_of_ones_own_in_a_folder_are_served_by_every_interface(adopter: Adopter) -> None:
    (adopter.folder / "domain/domain/likes").mkdir()
    adopter.declare("likes/__init__.py", '"""Likes."""\n')
    adopter.declare("likes/edges.py", EDGES)
    ends = {"node": "User.1", "other": "Film.2"}
    added, counts, count, said, invoked, wrong, document = adopter.do(
        ("http", "POST", "/v1/likes", ends),
        ("http", "GET", "/v1/likes/counts?of=User.1"),
        ("commands", {"operation": "count", "entity": "likes", "of": "Film.2", "way": "backward"}),
        ("http", "GET", "/v1/echoes?word=hello&times=2"),
        ("commands", {"operation": "list", "entity": "echoes", "word": "hello"}),
        ("http", "GET", "/v1/echoes"),
        ("http", "GET", "/v1/openapi.json"),
    )

    echo = {"tenant": adopter.environment["TENANT"], "word": "hello"}
    assert added[0] == 201
    assert counts == [200, {"liking": 1, "likers": 0}]
    assert count["result"] == 1
    assert said == [200, {"items": [echo, echo]}]
    assert invoked["result"] == {"items": [echo], "cursor": None}
    assert (wrong[0], [error["field"] for error in wrong[1]["errors"]]) == (422, ["word"])
    validate(document[1])
    listed = document[1]["paths"]["/v1/echoes"]["get"]
    assert (listed["operationId"], listed["summary"], listed["tags"]) == ("listEcho", "Say it again", ["echoes"])
    assert document[1]["paths"]["/v1/likes"]["post"]["summary"] == "Like a node"
