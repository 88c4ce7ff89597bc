"""The example file is what its script writes."""

import csv
import runpy
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_committed_users_are_what_the_script_writes(tmp_path: Path) -> None:
    script = shutil.copy(EXAMPLES / "make_users.py", tmp_path)

    runpy.run_path(str(script), run_name="__main__")

    assert (tmp_path / "users.csv").read_bytes() == (EXAMPLES / "users.csv").read_bytes()


def test_the_example_has_a_thousand_different_users_whose_managers_are_among_them() -> None:
    with (EXAMPLES / "users.csv").open(newline="", encoding="utf-8") as file:
        users = list(csv.DictReader(file))

    ids, emails = {user["id"] for user in users}, {user["email"] for user in users}

    assert len(users) == len(ids) == len(emails) == 1000
    assert {user["manager_id"] for user in users} <= ids | {""}
