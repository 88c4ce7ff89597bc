"""The code of earlier releases, archived so that tests can run it: `make release-archive RELEASE=0.1.0 COMMIT=...`.

An archive has the layers, the functions and the local stack of a release, and the templates that it synthesises
locally. So an unpacked release starts without CDK, git and network. It runs on the packages of this checkout's `.venv`.
"""

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = Path(__file__).resolve().parent
_CODE: Final = ("layers", "functions", "local")
_PACKAGES: Final = tuple(f"layers/{name}/python" for name in ("sharding", "direct", "patterns", "serving", "domain"))


def unpacked(release: str, folder: Path) -> Path:
    """Unpack a release into an empty folder, and return the Python interpreter that runs it, whatever the folder."""
    with tarfile.open(FOLDER / f"{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return interpreter(folder)


def interpreter(checkout: Path) -> Path:
    """Give a checkout a virtual environment with the packages of ours, and return its interpreter.

    It reads no `.pth` file of ours, so it cannot import the code of this checkout.
    """
    (checkout / "node_modules").symlink_to(ROOT / "node_modules")
    site = Path(sys.prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
    own = checkout / ".venv" / site.relative_to(sys.prefix)
    own.mkdir(parents=True)
    paths = [*(checkout / each for each in _PACKAGES), checkout, site]
    (own / "release.pth").write_text("".join(f"{path}\n" for path in paths))
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), checkout / ".venv" / "pyvenv.cfg")
    program = checkout / ".venv" / "bin" / "python"
    program.parent.mkdir()
    program.symlink_to(Path(sys.executable).resolve())
    return program


def archived(commit: str, checkout: Path, *paths: str) -> None:
    """Put the files of a commit into an empty folder: all of them, or those under `paths`."""
    command = ["git", "archive", "--format=tar", commit, *paths]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S603 - our own checkout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(checkout, filter="data")


def build(release: str, commit: str) -> Path:
    """Archive the code of a commit, with the templates of its local stack, as a release, and return the archive."""
    with tempfile.TemporaryDirectory() as place:
        archived(commit, Path(place), *_CODE)
        target = FOLDER / f"{release}.tar.xz"
        with tarfile.open(target, "w:xz", preset=9) as archive:
            for name in _CODE:
                archive.add(Path(place, name), name, filter=_alike)
    return target


def _alike(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Archive files alike on every machine, and no bytecode."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return None if "__pycache__" in entry.name else entry


if __name__ == "__main__":
    sys.stdout.write(f"{build(*sys.argv[1:])}\n")
