"""The release that a deployment publishes: a mark that all functions of one deployment carry, and no other deployment.

A change of any function's code, of a layer, of a setting or of the infrastructure makes a new release, and a release
publishes a version of every function. So the versions that ran together are those that carry the same mark.
"""

import hashlib
from typing import Final

from stacks.bundling import ROOT, SOURCES, Bundle
from stacks.settings import Settings

LIVE: Final = "live"
"""The alias by which everything invokes a function. It points at the version of the release that runs."""
RELEASE: Final = "RELEASE"
"""The environment variable with the mark. It is configuration, so a new release publishes versions of all functions."""
LENGTH: Final = 12
"""Characters of a mark."""


def describe(release: str) -> str:
    """Return the description of a release's versions, by which `dynashard rollback` finds them."""
    return f"release {release}"


def release_of(bundle: Bundle, settings: Settings) -> str:
    """Return the mark of a release: a hash of all that it deploys. It needs no clock and no git.

    A template that is not for a deployment has the mark `sources`.
    """
    if bundle.folder is None:
        return SOURCES
    digest = hashlib.sha256(settings.model_dump_json().encode())
    for folder in (*bundle.folders, ROOT / "stacks"):
        # Bytecode of the infrastructure itself depends on who has imported it.
        pattern = "*.py" if folder.name == "stacks" else "*"
        for path in sorted(each for each in folder.rglob(pattern) if each.is_file()):
            content, name = path.read_bytes(), path.relative_to(folder.parent).as_posix()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:LENGTH]
