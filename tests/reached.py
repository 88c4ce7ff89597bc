"""The files that a module of the checkout reaches, and a record of them that shows later whether one has changed."""

import ast
import hashlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from packages.checkout import PACKAGES

SHARED: Final = {"pyproject.toml", "requirements/dev.txt", "tests/conftest.py", "tests/engine/conftest.py"}
"""What every test depends on, though no module names it."""
INTERPRETER: Final = "the interpreter"

Record = Mapping[str, str]
"""Digests by name: of files, of the names in folders (`keys/`), and of the interpreter."""


class Checkout:
    """The files of a checkout that git tracks or would track.

    A module reaches what it imports anywhere in its code, and each module or file that one of its strings names,
    because commands, handlers and processes are started by name. A module that imports by a calculated name reaches
    its whole package. Files beside a module that are not Python are reached with it.
    """

    def __init__(self, root: Path) -> None:
        """List the files. Raises `CalledProcessError` or `OSError` if git cannot list them."""
        self._root = root
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout  # noqa: S603
        self.files = {name for name in listed.split("\0") if name and (root / name).is_file()}
        self._below: dict[str, set[str]] = {}
        self._called: dict[str, set[str]] = {}
        for name in self.files:
            for folder in _folders(name):
                self._below.setdefault(folder, set()).add(name)
            if not name.endswith(".py"):
                self._called.setdefault(PurePosixPath(name).name, set()).add(name)
        self._modules = {_dotted(name): name for name in self.files if name.endswith(".py")}
        self._named_by = cache(lambda name: {found for names in self._find(name) for found in names})
        self._digest = cache(self._digested)

    def reached(self, module: str) -> set[str]:
        """Return the files that a module reaches in any number of steps, itself included."""
        found: set[str] = set()
        left = {module}
        while left:
            name = left.pop()
            found.add(name)
            if name.endswith(".py"):
                left |= self._named_by(name) - found
        return found

    def record(self, module: str) -> Record:
        """Return what must not change, so that the tests of a module need not run again."""
        files = self.reached(module) | (SHARED & self.files)
        folders = {f"{folder}/" for name in files for folder in _folders(name)[:1]}
        return {name: self._digest(name) for name in (*sorted(files | folders), INTERPRETER)}

    def unchanged(self, record: Record) -> bool:
        """Whether everything is as recorded, and no file was added where one was reached."""
        return all(self._digest(name) == digest for name, digest in record.items())

    def changed(self, record: Record) -> float:
        """Return when one of these files was changed last, in seconds of the clock."""
        return max((self._root / name).stat().st_mtime for name in record if name in self.files)

    def _digested(self, name: str) -> str:
        if name == INTERPRETER:
            content = sys.version.encode()
        elif name.endswith("/"):
            within = {each.removeprefix(name).partition("/")[0] for each in self._below.get(name[:-1], ())}
            content = "\n".join(sorted(within)).encode()
        else:
            content = (self._root / name).read_bytes() if name in self.files else b"absent"
        return hashlib.sha256(content).hexdigest()[:20]

    def _find(self, name: str) -> Iterator[set[str]]:
        folder = PurePosixPath(name).parent
        beside = (each for each in self._below.get(str(folder), ()) if PurePosixPath(each).parent == folder)
        yield {each for each in beside if not each.endswith(".py")}
        code = (self._root / name).read_text("utf-8")
        if "import_module" in code:
            yield self._package(_dotted(name).partition(".")[0])
        for node in ast.walk(ast.parse(code)):
            match node:
                case ast.Import(names=aliases):
                    yield from (self._imported(alias.name) for alias in aliases)
                case ast.ImportFrom(module=str(module), names=aliases):
                    yield from (self._imported(f"{module}.{alias.name}") for alias in aliases)
                case ast.Constant(value=str(text)):
                    yield from self._mentioned(text.strip("./"), folder)

    def _imported(self, dotted: str) -> set[str]:
        """Return the module, or the one with this attribute, and the packages around it."""
        parts = dotted.split(".")
        names = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        return {self._modules[name] for name in names if name in self._modules}

    def _mentioned(self, text: str, folder: PurePosixPath) -> Iterator[set[str]]:
        dotted = text.partition(":")[0]
        yield self._imported(dotted)
        yield self._package(dotted)
        yield self._called.get(text.rpartition("/")[2], set())
        yield self._below.get(f"{folder}/{text}", set())
        if "/" in text:
            yield self._below.get(text, set()) | self.files.intersection([text])

    def _package(self, dotted: str) -> set[str]:
        file = self._modules.get(dotted, "")
        return self._below[_folders(file)[0]] if file.endswith("/__init__.py") else set()


def _folders(name: str) -> list[str]:
    """Return the folders around a file, from the innermost one. The root is none."""
    return [str(folder) for folder in PurePosixPath(name).parents][:-1]


def _dotted(name: str) -> str:
    """Return the name by which a file is imported."""
    start = next(start for start in PACKAGES if name.startswith(f"{start}/") or not start)
    return ".".join(PurePosixPath(name.removeprefix(f"{start}/")).with_suffix("").parts).removesuffix(".__init__")
