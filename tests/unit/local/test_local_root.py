"""The backend is the one around the working directory, and its own templates come before those of the package."""

import shutil
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
