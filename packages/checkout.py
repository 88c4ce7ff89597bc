"""Writes the wheel by which `requirements.txt` makes this checkout's packages importable.

pip refuses editable packages in one file with hashes, because a folder has no hash. The wheel has one. It has only a
line for the interpreter's start, which puts the packages of the checkout on the path: pip records where a wheel was
installed from, and the wheel is in the checkout. It installs the command `dynashard` as well.

The wheel changes only with this module and the scripts in pyproject.toml. Two writes are the same bytes.
"""

import base64
import hashlib
import tomllib
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
NAME: Final = "dynashard_checkout"
VERSION: Final = "1"
WHEEL: Final = Path("requirements") / f"{NAME}-{VERSION}-py3-none-any.whl"
REQUIREMENTS: Final = Path("requirements.txt")
PACKAGES: Final = (
    "layers/sharding/python",
    "layers/patterns/python",
    "layers/serving/python",
    "layers/domain/python",
    "packages/cdk",
    "packages/local",
    "packages/tools",
    "packages/lab",
    "packages/checks",
    "packages/client",
    "",
)
"""The folders of the checkout that packages are imported from."""

_INFO = f"{NAME}-{VERSION}.dist-info"
_MODULE = f'''\
"""Puts the packages of the checkout that this was installed from on the path."""

import os
import sys


def _checkout():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "{_INFO}")
    with open(os.path.join(folder, "direct_url.json"), encoding="utf-8") as file:
        content = file.read()
    # The interpreter starts more slowly with every import made here.
    url = content.split('"url"')[1].split('"')[1].removeprefix("file://")
    if "%" in url:
        from urllib.parse import unquote

        url = unquote(url)
    return os.path.dirname(os.path.dirname(url))


for _folder in {PACKAGES!r}:
    _path = os.path.join(_checkout(), _folder).rstrip(os.sep)
    if _path not in sys.path:
        sys.path.append(_path)
'''
_REQUIREMENTS = """\
# Everything a checkout needs, pinned and hashed. In a fresh virtual environment, in the checkout's folder:
#     pip install -r requirements.txt
# `make setup` does the same, and installs what node needs.
-r requirements/dev.txt
# The packages of this checkout and the command `dynashard`, as if installed editable: see packages.checkout.
./{wheel} --hash=sha256:{digest}
"""


def main() -> None:
    """Write the wheel, and the requirements that name its hash."""
    wheel = ROOT / WHEEL
    write_wheel(wheel)
    (ROOT / REQUIREMENTS).write_text(requirements(wheel))


def requirements(wheel: Path) -> str:
    """Return what requirements.txt holds with this wheel."""
    return _REQUIREMENTS.format(wheel=WHEEL.as_posix(), digest=hashlib.sha256(wheel.read_bytes()).hexdigest())


def write_wheel(path: Path) -> None:
    """Write the wheel to a file."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    files = {
        f"{NAME}.py": _MODULE,
        f"{NAME}.pth": f"import {NAME}\n",
        f"{_INFO}/METADATA": (
            f"Metadata-Version: 2.1\nName: {NAME.replace('_', '-')}\nVersion: {VERSION}\n"
            "Summary: Makes the packages of a checkout of Dynashard importable\n"
        ),
        f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: dynashard\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{_INFO}/entry_points.txt": "\n".join(
            ["[console_scripts]", *(f"{name} = {where}" for name, where in scripts.items()), ""]
        ),
    }
    files[f"{_INFO}/RECORD"] = "".join(_record(name, text) for name, text in files.items()) + f"{_INFO}/RECORD,,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as wheel:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            wheel.writestr(entry, text)


def _record(name: str, text: str) -> str:
    content = text.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


if __name__ == "__main__":
    main()
