"""Builds the distributions of this repository into `dist/` (`make wheels`), and leaves nothing else behind.

A distribution may have packages of several folders. Each is built from a copy in a temporary folder, because setuptools
leaves folders behind whose content would enter the next wheel.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dynashard_tools.new.template import READ, SHARED

ROOT: Final = Path(__file__).resolve().parents[1]
_LEFT_OUT: Final = ("__pycache__", "*.pyc", "build", "*.egg-info")
_CHECKS: Final = "packages/checks/dynashard_checks"
_EPOCH: Final = "315532800"
"""1980, the first time that a zip can hold: two builds of one commit are the same bytes."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What is installed under one name.

    Attributes:
        name: its name, as pip knows it.
        folder: the folder of its pyproject.toml and its README.
        packages: the folders of its packages.
        without: paths within the packages that only this repository uses.
        copied: files that it has besides, each with its place.
    """

    name: str
    folder: str
    packages: tuple[str, ...]
    without: tuple[str, ...] = ()
    copied: Mapping[str, str] = field(default_factory=dict)

    @property
    def project(self) -> dict[str, Any]:
        """The table `project` of its pyproject.toml."""
        found: dict[str, Any] = tomllib.loads((ROOT / self.folder / "pyproject.toml").read_text())["project"]
        return found

    @property
    def files(self) -> dict[str, Path]:
        """Its files by their place in the wheel."""
        held = {place: ROOT / source for source, place in self.copied.items()}
        for package in self.packages:
            source = ROOT / package
            for path in sorted(source.rglob("*")):
                place = path.relative_to(source.parent)
                if path.is_file() and not self._left_out(place):
                    held[place.as_posix()] = path
        return held

    def _left_out(self, place: Path) -> bool:
        if any(place.is_relative_to(name) for name in self.without):
            return True
        return any(part.match(pattern) for part in map(Path, place.parts) for pattern in _LEFT_OUT)


DISTRIBUTIONS: Final = (
    Distribution(
        "dynashard",
        "layers/sharding",
        ("layers/sharding/python/dynashard", "layers/patterns/python/dynashard_patterns"),
    ),
    Distribution("dynashard-backend", "layers/serving", ("layers/serving/python/dynashard_serving",)),
    Distribution(
        "dynashard-cdk",
        "packages/cdk",
        ("packages/cdk/dynashard_cdk",),
        copied={
            f"requirements/{name}.txt": f"dynashard_cdk/locks/{name}.txt"
            for name in ("sharding", "serving", "functions")
        },
    ),
    Distribution(
        "dynashard-tools",
        "packages/tools",
        (
            "packages/tools/dynashard_tools",
            "packages/local/dynashard_local",
            "packages/lab/dynashard_lab",
            _CHECKS,
        ),
        # They need the tests or the environments of this repository.
        without=(
            "dynashard_local/deploy",
            "dynashard_lab/bench",
            "dynashard_checks/linearizability",
            "dynashard_checks/schedules",
            "dynashard_checks/soak",
            "dynashard_checks/truth",
            *(f"dynashard_checks/{path.name}" for path in sorted((ROOT / _CHECKS).glob("[a-z]*.py"))),
        ),
        copied={place: f"dynashard_tools/new/sample/{place}" for place in (*SHARED, *READ)},
    ),
    Distribution("dynashard-client", "packages/client", ("packages/client/dynashard_client",)),
)


def build(destination: Path) -> list[Path]:
    """Build the wheels of all distributions into a folder, in place of older ones, and return them.

    Raises:
        CalledProcessError: setuptools fails.
    """
    destination.mkdir(parents=True, exist_ok=True)
    for old in destination.glob("dynashard*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as work:
        staged = [str(_staged(each, Path(work) / each.name)) for each in DISTRIBUTIONS]
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        options = ["--no-deps", "--no-build-isolation", "--no-index", f"--wheel-dir={destination}"]
        subprocess.run([*command, *options, *staged], check=True, env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH})  # noqa: S603
    return sorted(destination.glob("dynashard*.whl"))


def _staged(distribution: Distribution, folder: Path) -> Path:
    """Copy a distribution to where its pyproject.toml looks for its packages."""
    where = tomllib.loads((ROOT / distribution.folder / "pyproject.toml").read_text())["tool"]["setuptools"]
    for place, source in distribution.files.items():
        copy = folder / where["packages"]["find"]["where"][0] / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    for name in ("README.md", "pyproject.toml"):
        shutil.copyfile(ROOT / distribution.folder / name, folder / name)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Build into `dist/`, or the folder that is named, and print what was built."""
    parser = argparse.ArgumentParser(prog="python -m packages.wheels", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("destination", nargs="?", type=Path, default=ROOT / "dist")
    for wheel in build(parser.parse_args(arguments).destination):
        sys.stdout.write(f"{wheel.name} {wheel.stat().st_size // 1000} kB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
