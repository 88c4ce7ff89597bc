"""`dynashard etl`: reads a partition in parallel, maps its items, and writes those that differ."""

import pytest

from domain.samples.users import User
from dynashard.service import Collection
from dynashard_tools.etl.run import ATTEMPTS, Etl
from dynashard_tools.failure import CommandError
from tests.engine.command_line import ROOT, CommandLine

pytestmark = pytest.mark.engine

Users = Collection[User]
MAP = ROOT / "examples/etl/departments.py"


def user(tenant: str, number: int, **fields: str) -> User:
    return User(tenant_id=tenant, id=f"u{number:03}", email=f"u{number}@b", display_name="U", **fields)


@pytest.fixture
def people(users: Users, tenant: str) -> Users:
    users.batch_write(put=[user(tenant, n, department="eng" if n % 3 else "sales") for n in range(90)])
    users.create(User(tenant_id=f"{tenant}-other", id="u001", email="o@b", display_name="O", department="eng"))
    return users


def test_only_differing_items_are_written_and_a_second_run_writes_nothing(
    command_line: CommandLine, people: Users, tenant: str
) -> None:
    first = command_line.run("etl", "users", tenant, MAP, "--json").summary
    again = command_line.run("etl", "users", tenant, MAP, "--json").summary

    assert (first["read"], first["changed"], first["unchanged"]) == (90, 60, 30)
    assert first["write_units"] >= 60
    assert (again["changed"], again["unchanged"], again["write_units"]) == (0, 90, 0)
    departments = {each.department for each in people.scan({"tenant_id": tenant})}
    assert departments == {"engineering", "sales"}
    assert people.get({"tenant_id": f"{tenant}-other", "id": "u001"}).department == "eng"


def test_a_dry_run_says_what_would_change_and_writes_nothing(
    command_line: CommandLine, tenant: str, people: Users
) -> None:
    outcome = command_line.run("etl", "users", tenant, MAP, "--dry-run")

    assert outcome.status == 0
    assert "60 would change" in outcome.out
    assert people.get({"tenant_id": tenant, "id": "u001"}).department == "eng"


def test_an_item_changed_meanwhile_is_mapped_again_and_no_change_is_lost(people: Users, tenant: str) -> None:
    met: set[str] = set()

    def change(item: User) -> dict[str, str]:
        first = item.id not in met
        met.add(item.id)
        if item.id == "u001" and first:
            people.update(item, set={"display_name": "Changed"})
        if item.id == "u002":
            people.delete(item)
        return {"department": f"{item.display_name}'s"}

    tally = Etl(people, change, workers=1).run({"tenant_id": tenant})

    assert (tally.read, tally.changed, tally.gone, tally.again) == (90, 89, 1, 1)
    found = people.get({"tenant_id": tenant, "id": "u001"})
    assert (found.display_name, found.department) == ("Changed", "Changed's")
    assert people.find({"tenant_id": tenant, "id": "u002"}) is None


def test_an_item_that_keeps_changing_ends_the_run(people: Users, tenant: str) -> None:
    calls = []

    def change(item: User) -> dict[str, str] | None:
        if item.id != "u001":
            return None
        calls.append(item)
        people.update(item, set={"display_name": f"Changed {len(calls)}"})
        return {"department": "x"}

    with pytest.raises(CommandError, match="changes too often"):
        Etl(people, change).run({"tenant_id": tenant})
    assert len(calls) == ATTEMPTS


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("change = 1", "has no function `change(item)`"),
        ("def change(item): return item.nothing", "the map fails for User(tenant_id="),
        ("def change(item): return 1", "return a mapping of fields, or None"),
        ("def change(item): return {'nothing': 1}", "nothing"),
        ("import nothing_of_this_name", "cannot be imported: ModuleNotFoundError"),
        ("def change(item): return {'email': 'none'}", "email"),
    ],
)
def test_an_unusable_map_is_reported_in_one_line(
    command_line: CommandLine, people: Users, tenant: str, code: str, message: str
) -> None:
    file = command_line.folder / "map.py"
    file.write_text(code)

    outcome = command_line.run("etl", "users", tenant, str(file))

    assert outcome.status != 0
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert people.get({"tenant_id": tenant, "id": "u001"}).department == "eng"


MAP_WITH_A_CLASS = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Wanted:
    department: str

def change(item: User) -> dict[str, str]:
    return vars(Wanted("ops"))
"""


def test_a_map_may_have_classes_whose_annotations_are_texts(
    command_line: CommandLine, people: Users, tenant: str
) -> None:
    file = command_line.folder / "map.py"
    file.write_text(MAP_WITH_A_CLASS)

    outcome = command_line.run("etl", "users", tenant, str(file))

    assert outcome.status == 0, outcome.err
    assert people.get({"tenant_id": tenant, "id": "u001"}).department == "ops"


def test_an_interrupted_run_reports_its_changes_and_keeps_them(
    command_line: CommandLine, people: Users, tenant: str
) -> None:
    file = command_line.folder / "map.py"
    file.write_text(
        "def change(item):\n    if item.id == 'u089': raise KeyboardInterrupt\n    return {'department': 'x'}"
    )

    ended = command_line.run("etl", "users", tenant, file)

    assert (ended.status, len(ended.err.splitlines())) == (130, 1)
    assert "run it again for the rest" in ended.err
    file.write_text("def change(item):\n    return {'department': 'x'}\n")
    assert command_line.run("etl", "users", tenant, file, "--json").summary["read"] == 90
    assert {each.department for each in people.scan({"tenant_id": tenant})} == {"x"}


@pytest.mark.usefixtures("people")
def test_on_a_terminal_a_line_shows_the_progress_of_the_run(command_line: CommandLine, tenant: str) -> None:
    status, shown = command_line.on_a_terminal("etl", "users", tenant, MAP)

    assert status == 0, shown
    assert "90 read, 60 changed" in shown


def test_a_missing_file_is_reported(command_line: CommandLine, tenant: str) -> None:
    assert "nothing.py cannot be read: it does not exist" in command_line.run("etl", "users", tenant, "nothing.py").err
    assert "is not a Python file" in command_line.run("etl", "users", tenant, "nothing.txt").err
