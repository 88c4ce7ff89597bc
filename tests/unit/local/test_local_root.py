"""The backend is the one around the working directory, and its own templates come before those of the package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dynashard_cdk import root as constructs
from dynashard_local import root as local
from dynashard_local.settings import Settings
from dynashard_local.template import FOLDER, OWN, committed
from dynashard_tools.environments import backend_context
from dynashard_tools.failure import CommandError

pytestmark = pytest.mark.unit


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A backend; the working directory is below it."""
    (tmp_path / "cdk.json").write_text('{"context": {"environments": {}}}')
    below = tmp_path / "functions" / "api"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return tmp_path


def test_the_backend_is_the_nearest_folder_with_a_cdk_json(backend: Path) -> None:
    assert constructs.backend_root() == local.backend_root() == backend
    assert Settings.from_env({}).data_dir == backend / ".data"

    (backend / "functions" / "cdk.json").touch()

    assert constructs.backend_root() == local.backend_root() == backend / "functions"


def test_without_one_it_is_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert constructs.backend_root() == local.backend_root() == tmp_path


def test_a_command_that_reads_settings_names_the_folder_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError, match=r"run this in the folder of a backend"):
        backend_context()


def test_another_process_imports_first_what_this_one_was_given(
    backend: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path_factory.mktemp("given")
    for folder in (given, backend / "layers" / "domain" / "python"):
        (folder / "domain").mkdir(parents=True)
        (folder / "domain" / "__init__.py").touch()
    code = "import domain; print(domain.__file__)"

    def imported() -> Path:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", code],
            env=local.environment_for(backend),
            cwd="/",
            check=True,
            capture_output=True,
            text=True,
        )
        return Path(done.stdout.strip()).parents[1]

    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert imported() == backend / "layers" / "domain" / "python"
    monkeypatch.setenv("PYTHONPATH", str(given))
    assert imported() == given


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_cdk_json_without_a_context_is_refused(backend: Path, text: str) -> None:
    (backend / "cdk.json").write_text(text)

    with pytest.raises(CommandError, match=r"cdk\.json cannot be used"):
        backend_context()


def test_templates_of_the_backend_come_before_those_of_the_package(backend: Path) -> None:
    shipped = len(list(committed().of_type("AWS::Lambda::Function")))
    (backend / OWN).mkdir(parents=True)
    shutil.copy(FOLDER / "Dynashard-local-Commands.template.json", backend / OWN)

    own = len(list(committed().of_type("AWS::Lambda::Function")))

    assert 1 == own < shipped


def test_packages_of_the_backend_are_found_after_what_is_on_the_path(
    backend: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["first"])

    local.importable(backend)
    local.importable(backend)

    assert sys.path == ["first", str(backend), str(backend / "layers/domain/python")]
