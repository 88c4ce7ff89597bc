"""The types that a program of an adopter gets, from a type checker without plug-ins."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.unit.project.rooms import ROOT

pytestmark = pytest.mark.unit

LAYERS: Final = [ROOT / f"layers/{each}/python" for each in ("sharding", "patterns")]
PROGRAM: Final = """
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import Any, assert_type

from pydantic import Field

from dynashard import AsyncDynashard, Collection, Dynashard, Entity, Key, Page, created_at, new_id
from dynashard.reads import Scan
from dynashard_patterns import Counter, CounterStore, Edge, Edges, EdgeStore


class User(Entity, name="user.v1.User", key=Key("{tenant_id}", "{id}")):
    tenant_id: str
    id: str = new_id()
    email: str = Field(min_length=3)
    age: int | None = None
    created_at: datetime = created_at()


class Team(Entity, name="team.v1.Team", key=Key("{tenant_id}", "{id}")):
    tenant_id: str
    id: str


class Seats(Counter, name="seats.v1.Seats", key=Key("{tenant_id}:{id}"), floor=0):
    tenant_id: str
    id: str


class Follow(Edge, name="follow.v1.Follow"): ...


ada = User(tenant_id="abc", email="ada@example.org")
Seats(tenant_id="abc", id="premiere")
User(tenant_id="abc")  # refused
User(tenant_id="abc", email=3)  # refused
User(tenant_id="abc", emial="ada@example.org")  # refused
Seats(tenant_id="abc", idd="premiere")  # refused


def plain(db: Dynashard, options: dict[str, str], some: Sequence[str]) -> None:
    users = db.collection(User)
    assert_type(users.list(tenant_id="abc"), Page[User])
    assert_type(users.list("abc", limit=3)[0], User)
    assert_type(users.pages(tenant_id="abc"), Iterator[Page[User]])
    assert_type(users.items(tenant_id="abc"), Iterator[User])
    assert_type(users.scan(tenant_id="abc"), Scan[User])
    assert_type(users.list(tenant_id="abc", fields=["email"]), Page[dict[str, Any]])
    assert_type(users.items(tenant_id="abc", fields=("email",)), Iterator[dict[str, Any]])
    assert_type(users.scan(tenant_id="abc", fields=["email"]), Scan[dict[str, Any]])
    assert_type(users.list("abc", **options), Page[Any])
    assert_type(users.list("abc", fields=some), Page[Any])
    page: Sequence[User] = users.list(tenant_id="abc")
    assert_type(db.collection(User, Team), Collection[User | Team])
    users.lst(tenant_id="abc")  # refused


async def awaited(db: AsyncDynashard) -> None:
    users = db.collection(User)
    assert_type(await users.list(tenant_id="abc"), Page[User])
    async for user in users.list(tenant_id="abc"):
        assert_type(user, User)
    items: AsyncIterator[User] = users.items(tenant_id="abc")
    pages: AsyncIterator[Page[User]] = users.pages(tenant_id="abc")
    found: AsyncIterator[User] = users.scan(tenant_id="abc")
    assert_type(await users.list(tenant_id="abc", fields=["email"]), Page[dict[str, Any]])
    assert_type([each async for each in db.collection(User, Team).items(tenant_id="abc")], list[User | Team])


def patterns(db: Dynashard, follows: Edges[Follow]) -> None:
    assert_type(CounterStore.on(db, Seats), CounterStore[Seats])
    assert_type(EdgeStore.on(db, follows), EdgeStore[Follow])
"""


def test_a_type_checker_without_plug_ins_knows_fields_and_what_calls_return(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    found = mypy(program)

    refused = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# refused")]
    assert [int(number) for number in re.findall(r"program\.py:(\d+): error", found)] == refused, found


def mypy(program: Path) -> str:
    """Return what mypy says about a program, by its defaults."""
    options = ["--strict", "--config-file=", f"--cache-dir={program.parent}", "--follow-imports=silent"]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "mypy", *options, str(program)],
        env={**os.environ, "MYPYPATH": os.pathsep.join(map(str, LAYERS))},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr
