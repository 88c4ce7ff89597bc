"""`dynashard migrate`, `index build` and `unique build` on the tables of a program."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dynashard import definition
from dynashard.errors import InvalidValueError, NotFoundError, NotUniqueError
from tests.engine.command_line import CommandLine, Outcome

pytestmark = pytest.mark.engine

PROGRAM = """
from dynashard import Dynashard, Entity, Index, Key, Registry, Shards, connect

KEY = Key("{{shop}}", "{{id}}")

def upgrade(values):
    return {{**values, "pieces": int(values.pop("amount"))}}

class Old(Entity, name="box{n}.v1.Box", key=KEY, shards=Shards(2), registry=Registry()):
    shop: str
    id: str
    amount: str

class Box{n}(
    Entity, name="box{n}.v1.Box", key=KEY, shards=Shards(2), version=2, upgrade={{1: upgrade}},
    indexes=[Index("GSI1", "by_pieces", partition="{{shop}}", sort="{{pieces:04d}}", backfill=True)],
):
    shop: str
    id: str
    pieces: int

class OldMember(Entity, name="member{n}.v1.Member", key=KEY, registry=Registry()):
    shop: str
    id: str
    email: str

class Member{n}(Entity, name="member{n}.v1.Member", key=KEY, unique=("email",)):
    shop: str
    id: str
    email: str

db = Dynashard(
    connect("{endpoint}", "us-east-1", access_key="local", secret_key="local"),
    table="boxes{n}", topology_table="counts{n}", cursor_keys=["a secret of 16 bytes or more"],
)
"""


@dataclass
class Program:
    """A module with tables, two versions of an entity, and the command line."""

    command_line: CommandLine
    number: str

    @property
    def name(self) -> str:
        return f"box{self.number}.v1.Box"

    def run(self, *arguments: str) -> Outcome:
        environment = {"DYNASHARD_DB": f"boxes_{self.number}:db"}
        return replace(self.command_line, environment=environment).run(*arguments)


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], engine_url: str
) -> Iterator[Program]:
    number = uuid4().hex[:8]
    (tmp_path / f"boxes_{number}.py").write_text(PROGRAM.format(n=number, endpoint=engine_url))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module = __import__(f"boxes_{number}")
    module.db.create_tables()
    old = module.Old
    module.db.collection(old).batch_write(put=[old(shop="abc", id=str(n), amount=str(n)) for n in range(25)])
    yield Program(CommandLine(tmp_path, {}, monkeypatch, capsys), number)
    module.db.close()


def test_migrate_counts_migrates_and_says_so(program: Program) -> None:
    before = program.run("migrate", program.name, "--dry-run", "--json")
    done = program.run("migrate", program.name, "--json")
    after = program.run("migrate", program.name, "--dry-run")

    assert before.summary["items"] == {"1": 25}
    assert done.status == 0, done.err
    assert (done.summary["complete"], done.summary["written"], done.summary["left"]) == (True, 25, 0)
    assert done.summary["write_units"] >= 25
    assert done.summary["read_units"] >= 1
    assert "storing all items" in done.err
    assert after.out == "version 2 (the present one): 25 items\n"


def test_an_item_that_cannot_be_upgraded_is_named(program: Program) -> None:
    module = sys.modules[f"boxes_{program.number}"]
    module.db.collection(module.Old).put(module.Old(shop="abc", id="3", amount="many"))

    done = program.run("migrate", program.name)

    assert done.status == 3
    assert "left as it is: " in done.out
    assert "many" in done.out
    assert "is not complete: 24 items written, 1 left" in done.out


@pytest.mark.parametrize(
    "raised", [InvalidValueError("no such amount"), NotFoundError("no shop"), KeyError("x")], ids=str
)
def test_an_item_whose_upgrade_raises_is_named_and_others_are_migrated(program: Program, raised: Exception) -> None:
    module = sys.modules[f"boxes_{program.number}"]

    def upgrade(values: dict[str, Any]) -> dict[str, Any]:
        if values["id"] == "3":
            raise raised
        return {**values, "pieces": int(values.pop("amount"))}

    functions: Any = definition(getattr(module, f"Box{program.number}")).versions.upgrades
    functions[1] = upgrade

    done = program.run("migrate", program.name)

    assert done.status == 3, done.err
    assert f"left as it is: {program.name}:abc" in done.out
    assert "the upgrade of version 1 failed" in done.out
    assert "is not complete: 24 items written, 1 left" in done.out


def test_unknown_indexes_and_entities_without_upgrades_are_refused(program: Program) -> None:
    unknown = program.run("index", "build", program.name, "by_colour")

    assert unknown.status == 1
    assert "has no index 'by_colour'. There are: by_pieces" in unknown.err


def test_index_build_completes_an_index_and_status_shows_it(program: Program) -> None:
    before = program.run("index", "status", program.name)
    program.run("migrate", program.name)
    built = program.run("index", "build", program.name, "by_pieces", "--write-units", "1000")
    after = program.run("index", "status", program.name)

    assert before.out == f"{program.name} by_pieces: may lack items\n"
    assert built.status == 0, built.err
    assert "the index by_pieces is complete: 0 items written" in built.out
    assert after.out == f"{program.name} by_pieces: complete, built\n"


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_index_build_names_the_migration_without_which_listings_may_lack_items(
    program: Program, more: tuple[str, ...]
) -> None:
    module = sys.modules[f"boxes_{program.number}"]
    boxes = module.db.collection(getattr(module, f"Box{program.number}"))

    built = program.run("index", "build", program.name, "by_pieces", *more)
    between = program.run("index", "status", program.name)

    assert built.status == 4, built.err
    if more:
        found = built.summary
        assert (found["complete"], found["needs"]) == (False, f"dynashard migrate {program.name}")
        assert found["written"] == 25
    else:
        assert "the index by_pieces is built: 25 items written" in built.out
        assert f"may lack items until `dynashard migrate {program.name}` is complete" in built.out
    assert between.out == f"{program.name} by_pieces: built, but may lack items of earlier versions\n"
    assert not boxes.list({"shop": "abc"}, index="by_pieces").complete
    assert program.run("migrate", program.name).status == 0
    assert program.run("index", "status", program.name).out == f"{program.name} by_pieces: complete, built\n"


def test_unique_build_reserves_the_values_of_items_that_exist(program: Program) -> None:
    module = sys.modules[f"boxes_{program.number}"]
    old, member = module.OldMember, getattr(module, f"Member{program.number}")
    module.db.collection(old).batch_write(put=[old(shop="abc", id=str(n), email=f"m{n}@b") for n in range(3)])

    built = program.run("unique", "build", f"member{program.number}.v1.Member", "--json")

    assert built.status == 0, built.err
    assert (built.summary["items"], built.summary["reserved"]) == (3, 3)
    with pytest.raises(NotUniqueError):
        module.db.collection(member).create(member(shop="abc", id="4", email="m1@b"))
