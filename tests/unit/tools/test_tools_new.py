"""`dynashard new` and `dynashard upgrade`: what is written, merged, kept and refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynashard_tools.failure import WITH_ERRORS, CommandError
from dynashard_tools.new import command
from dynashard_tools.new.command import new
from dynashard_tools.new.template import PLACES, SHARED, TEMPLATES, rendered
from dynashard_tools.new.upgrading import RECORD, Origin, upgrade
from dynashard_tools.version import VERSION

pytestmark = pytest.mark.unit

BEFORE = "one\ntwo\nthree\n"


def files(root: Path) -> dict[str, str]:
    found = (path for path in root.rglob("*") if path.is_file() and RECORD.name != path.name)
    return {path.relative_to(root).as_posix(): path.read_text() for path in found}


def upgraded(root: Path, before: dict[str, str], after: dict[str, str]) -> dict[str, list[str]]:
    changes = upgrade(root, Origin("notes", "1.0.0", before), Origin("notes", "2.0.0", after))
    return {
        "written": changes.written,
        "conflicts": changes.conflicts,
        "removed": changes.removed,
        "kept": changes.kept,
    }


def test_a_new_backend_has_at_most_twenty_files_and_names_itself(tmp_path: Path) -> None:
    new(tmp_path / "my-notes")

    made = files(tmp_path / "my-notes")
    assert made == rendered("my-notes")
    assert len(made) <= 20
    assert made["README.md"].startswith("# my-notes\n")
    assert f"dynashard-tools[testing]=={VERSION}\n" in made["requirements.txt"]
    assert json.loads(made["package.json"])["devDependencies"].keys() == {"aws-cdk", "pyodide"}
    assert [text for text in made.values() if "@NAME@" in text or "@VERSION@" in text] == []


def test_a_new_backend_can_do_what_the_page_of_deploying_says(tmp_path: Path) -> None:
    new(tmp_path / "my-notes")

    asked = subprocess.run(
        ["make", "--dry-run", "preflight", "destroy", "ENV=prod"],  # noqa: S607 - whatever make there is
        cwd=tmp_path / "my-notes",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()

    assert ".venv/bin/dynashard preflight --env prod " in asked
    # Executions that still run would keep the name of their state machine.
    [halted] = [at for at, line in enumerate(asked) if line == ".venv/bin/dynashard reshard halt --env prod"]
    assert asked[halted + 1].startswith("node_modules/.bin/cdk destroy --all -c env=prod")


def test_every_template_has_a_place() -> None:
    templates = {path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.tmpl")}

    assert templates == {f"{name}.tmpl" for name in PLACES}
    assert not set(SHARED) & set(PLACES.values())


@pytest.mark.parametrize("name", ["Notes", "1st", "with space", "a" * 41])
def test_a_name_that_package_json_could_not_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="cannot be a name"):
        new(tmp_path / name)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine").touch()

    with pytest.raises(CommandError, match="is not empty"):
        new(tmp_path / "notes")

    assert files(tmp_path / "notes") == {"mine": ""}


def test_a_command_outside_of_a_backend_offers_to_make_one(tmp_path: Path) -> None:
    # Without `site` the environment does not put this checkout on the path, so there is no domain. The folders of
    # tests, which pytest adds, have one of the same name.
    tests = str(Path(__file__).parents[2])
    path = [each for each in sys.path if each and not each.endswith("layers/domain/python") and tests not in each]
    code = (
        f"import sys; sys.path[:] = {path!r}; sys.argv[1:] = ['--help']; from dynashard_tools.cli import main; main()"
    )

    shown = subprocess.run(  # noqa: S603
        [sys.executable, "-I", "-S", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    ).stdout

    assert "new" in shown
    assert "reshard" not in shown


def test_a_file_that_only_the_release_has_changed_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(BEFORE)

    did = upgraded(tmp_path, {"a": BEFORE}, {"a": "new\n"})

    assert did["written"] == ["a"]
    assert (tmp_path / "a").read_text() == "new\n"


def test_changes_of_both_are_merged(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ONE\ntwo\nthree\n")

    did = upgraded(tmp_path, {"a": BEFORE}, {"a": "one\ntwo\nthree\nfour\n"})

    assert did["written"] == ["a"]
    assert (tmp_path / "a").read_text() == "ONE\ntwo\nthree\nfour\n"


def test_a_conflict_keeps_both_texts_between_markers(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\nours\nthree\n")

    did = upgraded(tmp_path, {"a": BEFORE}, {"a": "one\ntheirs\nthree\n"})

    assert did["conflicts"] == ["a"]
    text = (tmp_path / "a").read_text()
    assert text.index("<<<<<<< yours") < text.index("ours") < text.index("theirs") < text.index(">>>>>>> release")


def test_a_new_file_is_written_and_one_of_the_owner_with_its_name_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine\n")

    did = upgraded(tmp_path, {}, {"folder/a": "new\n", "b": "theirs\n"})

    assert did["written"] == ["folder/a"]
    assert did["conflicts"] == ["b"]
    assert (tmp_path / "folder/a").read_text() == "new\n"
    assert "mine" in (tmp_path / "b").read_text()


def test_a_file_that_the_owner_removed_stays_away(tmp_path: Path) -> None:
    did = upgraded(tmp_path, {"a": BEFORE}, {"a": "new\n"})

    assert did["kept"] == ["a"]
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(("yours", "there"), [(BEFORE, False), ("mine\n", True)])
def test_a_file_that_the_release_drops_goes_unless_its_owner_changed_it(
    tmp_path: Path,
    yours: str,
    there: bool,  # noqa: FBT001 - a case
) -> None:
    (tmp_path / "a").write_text(yours)

    did = upgraded(tmp_path, {"a": BEFORE}, {})

    assert (tmp_path / "a").exists() == there
    assert did["kept" if there else "removed"] == ["a"]


def test_nothing_is_changed_if_one_file_cannot_be_merged(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BEFORE)
    (tmp_path / "b.py").write_bytes(b"caf\xe9\n")

    with pytest.raises(CommandError, match=r"b\.py is not UTF-8: convert it first"):
        upgraded(tmp_path, {"a.py": BEFORE, "b.py": BEFORE}, {"a.py": "one\n", "b.py": "two\n"})

    assert (tmp_path / "a.py").read_text() == BEFORE
    assert not (tmp_path / RECORD).exists()


def test_an_upgrade_is_recorded_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine\n")
    upgraded(tmp_path, {"a": BEFORE}, {"a": "new\n"})
    marked = (tmp_path / "a").read_text()

    origin = Origin.of(tmp_path)

    assert (origin.version, origin.files) == ("2.0.0", {"a": "new\n"})
    assert upgraded(tmp_path, dict(origin.files), {"a": "new\n"})["conflicts"] == []
    assert (tmp_path / "a").read_text() == marked


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new backend, which is the working directory."""
    new(tmp_path / "notes")
    monkeypatch.chdir(tmp_path / "notes")
    return tmp_path / "notes"


def of_release(root: Path, version: str, **files_then: str) -> None:
    origin = Origin.of(root)
    Origin(origin.name, version, {**origin.files, **files_then}).write(root)


def test_an_older_tool_does_not_upgrade(notes: Path) -> None:
    of_release(notes, "100.0.0")

    with pytest.raises(CommandError, match=r"the backend is of 100\.0\.0"):
        command.upgrade()


def test_an_upgrade_with_conflicts_has_an_exit_status_of_its_own(notes: Path) -> None:
    of_release(notes, "0.0.9", Makefile="before\n")
    (notes / "Makefile").write_text("mine\n")

    with pytest.raises(CommandError, match="conflicts in Makefile") as caught:
        command.upgrade()

    assert caught.value.status == WITH_ERRORS


@pytest.mark.parametrize("text", [None, "{", "{}", "[]"])
def test_a_backend_without_a_readable_record_is_not_touched(notes: Path, text: str | None) -> None:
    if text is None:
        (notes / RECORD).unlink()
    else:
        (notes / RECORD).write_text(text)

    with pytest.raises(CommandError, match=r"backend\.json"):
        command.upgrade()

    assert files(notes) == rendered("notes")
