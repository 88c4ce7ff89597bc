"""`pip install -r requirements.txt` installs the same packages as `make setup`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from packages.checkout import PACKAGES, REQUIREMENTS, ROOT, WHEEL, requirements, write_wheel

pytestmark = pytest.mark.unit


def run(*command: str | Path, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


def test_the_committed_requirements_are_the_generated_ones(tmp_path: Path) -> None:
    write_wheel(tmp_path / "again.whl")

    remedy = "Run `.venv/bin/python -m packages.checkout`."
    assert (tmp_path / "again.whl").read_bytes() == (ROOT / WHEEL).read_bytes(), remedy
    assert (ROOT / REQUIREMENTS).read_text() == requirements(ROOT / WHEEL), remedy


def test_make_setup_installs_the_same_file_and_nothing_else() -> None:
    rule = re.search(r"^\.venv/\.done: (.*)\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert rule is not None
    installs = [line for line in rule[2].splitlines() if "pip" in line]

    assert rule[1].split() == ["requirements.txt", "requirements/dev.txt"]
    assert len(installs) == 1
    assert installs[0].endswith(" -r requirements.txt")


def test_the_packages_of_a_checkout_are_importable_from_any_folder(tmp_path: Path) -> None:
    checkout = tmp_path / "a checkout"
    (checkout / "requirements").mkdir(parents=True)
    shutil.copy(ROOT / WHEEL, checkout / WHEEL)
    own = [line for line in (ROOT / REQUIREMENTS).read_text().splitlines() if line.startswith("./")]
    (checkout / REQUIREMENTS).write_text("\n".join(own))
    python = checkout / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", checkout / "venv", cwd=tmp_path)

    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--no-index", "--require-hashes", "-r", "requirements.txt", cwd=checkout)

    path = run(python, "-c", "import sys; print(*sys.path, sep='\\n')", cwd=tmp_path).splitlines()
    assert path[-len(PACKAGES) :] == [str(checkout / folder) for folder in PACKAGES]
    assert "dynashard_tools.cli" in (checkout / "venv" / "bin" / "dynashard").read_text()
