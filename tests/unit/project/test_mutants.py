"""The table of `make mutants` names rooms and tests that exist, and accounts for every change that no test noticed."""

import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = pytest.mark.unit

ROOT: Final = Path(__file__).parents[3]
LIBRARY: Final = ROOT / "layers" / "sharding" / "python" / "dynashard"
TABLE: Final[dict[str, Any]] = tomllib.loads((ROOT / "tests" / "mutants" / "rooms.toml").read_text("utf-8"))
ROOMS: Final[dict[str, dict[str, Any]]] = TABLE["rooms"]
MEASURED: Final = [name for name in ROOMS if "figures" in ROOMS[name]]
GOAL: Final = 0.85


def test_the_table_has_the_rooms_of_the_goal() -> None:
    pure = {"keys", "placement", "codec", "entity", "routing", "topology"}

    assert set(ROOMS) == pure | {"repository", "reads", "resharding", "growth"}


@pytest.mark.parametrize("name", ROOMS)
def test_the_code_and_the_tests_of_a_room_exist(name: str) -> None:
    room = ROOMS[name]

    assert set(room) - {"figures", "survivors"} == {"code", "tests", "sample"}
    assert [path for path in room["code"] if not (LIBRARY / path).exists()] == []
    assert [path for path in room["tests"] if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", MEASURED)
def test_each_change_that_no_test_noticed_is_listed_with_a_reason(name: str) -> None:
    room = ROOMS[name]
    figures = room["figures"]
    survivors = room.get("survivors", [])

    assert set(figures) == {"found", "tried", "noticed", "commit", "date"}
    assert figures["noticed"] <= figures["tried"] == min(figures["found"], room["sample"])
    assert sum(survivor.get("times", 1) for survivor in survivors) == figures["tried"] - figures["noticed"]
    assert all(survivor["change"] and survivor["reason"] for survivor in survivors)


@pytest.mark.parametrize("name", MEASURED)
def test_a_measured_room_that_misses_the_goal_says_so(name: str) -> None:
    figures = ROOMS[name]["figures"]
    gaps = [survivor for survivor in ROOMS[name].get("survivors", []) if survivor["reason"].startswith("no test yet")]

    assert figures["noticed"] >= GOAL * figures["tried"] or gaps


def test_the_page_about_tests_has_the_figures_of_all_rooms() -> None:
    rows = [line for line in (ROOT / "docs" / "testing.md").read_text("utf-8").splitlines() if "%" in line]
    figures = [(name, ROOMS[name]["figures"]) for name in MEASURED]

    expected = [
        f"| `{name}` | {each['found']} | {each['tried']} | {each['noticed']} | {each['noticed'] / each['tried']:.0%} |"
        for name, each in figures
    ]
    assert [row for row in rows if row.startswith(tuple(f"| `{name}` |" for name in ROOMS))] == expected
