"""The example files are those that their scripts write."""

import csv
import runpy
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).parents[3] / "examples"


ON_CALL = ("teams", "schedules", "shifts", "overrides", "contact-methods", "notification-rules")


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("make_users.py", ["users.csv"]),
        ("make_on_call.py", [f"{name}.csv" for name in ON_CALL]),
        ("make_incidents.py", ["incidents.jsonl", "accesses.csv", "timed-accesses.csv"]),
    ],
)
def test_the_committed_files_are_those_of_the_script(script: str, files: list[str], tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / script, tmp_path)
    if script != "make_users.py":
        shutil.copy(EXAMPLES / "users.csv", tmp_path)

    runpy.run_path(str(tmp_path / script), run_name="__main__")

    for file in files:
        assert (tmp_path / file).read_bytes() == (EXAMPLES / file).read_bytes()


def test_the_example_has_a_thousand_users_and_all_their_managers() -> None:
    with (EXAMPLES / "users.csv").open(newline="", encoding="utf-8") as file:
        users = list(csv.DictReader(file))

    ids, emails = {user["id"] for user in users}, {user["email"] for user in users}

    assert len(users) == len(ids) == len(emails) == 1000
    assert {user["manager_id"] for user in users} <= ids | {""}
