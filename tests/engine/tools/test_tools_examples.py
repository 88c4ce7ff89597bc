"""The files under `examples/` fit their entities, and entities that the backend writes itself are not loaded."""

from pathlib import Path

import pytest

from tests.engine.command_line import ROOT, CommandLine

pytestmark = pytest.mark.engine

FILES = [*(ROOT / "examples").glob("*.csv"), *(ROOT / "examples").glob("*.jsonl")]
EXAMPLES = sorted(path for path in FILES if path.stem != "users")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.stem))
def test_every_row_of_an_example_can_be_loaded(command_line: CommandLine, tenant: str, file: Path) -> None:
    checked = command_line.run("load", file.stem, file, "--tenant", tenant, "--dry-run", "--json")

    rows = len(file.read_text(encoding="utf-8").splitlines()) - (file.suffix == ".csv")
    assert (checked.status, checked.summary["items"], checked.summary["refused"]) == (0, rows, 0)


@pytest.mark.parametrize("entity", ["participations", "operations", "follows", "episode-plays"])
def test_entities_that_the_backend_writes_itself_are_not_loaded(
    command_line: CommandLine, tenant: str, entity: str
) -> None:
    file = command_line.file("rows.jsonl")

    refused = command_line.run("load", entity, file, "--tenant", tenant)

    assert (refused.status, refused.out) == (1, "")
    assert "written by the backend itself" in refused.err
