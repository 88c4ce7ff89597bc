"""The release that a deployment publishes: a mark that all functions of one deployment carry, and no other deployment.

A change of any function's code, of a layer, of a setting or of the infrastructure makes a new release, and a release
publishes a version of every function. So the versions that ran together are those that carry the same mark.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dynashard_cdk.settings import Settings

LIVE: Final = "live"
"""The alias by which everything invokes a function. It points at the version of the release that runs."""
RELEASE: Final = "RELEASE"
"""The environment variable with the mark. It is configuration, so a new release publishes versions of all functions."""
UNDERSTANDS: Final = "UNDERSTANDS"
"""The environment variable with the attributes of topology records that a release understands, separated by commas.
`dynashard rollback` compares them with the stored records; nothing else reads it."""
SOURCES: Final = "sources"
STACKS: Final = Path(__file__).resolve().parent
LENGTH: Final = 12
"""Characters of a mark."""
RELEASES: Final = re.compile(r"release (\S+)")
"""The description of a release's versions, by which `dynashard rollback` finds them; its group is the mark."""


def describe(release: str) -> str:
    """Return the description of a release's versions; see `RELEASES`."""
    return f"release {release}"


def release_of(folders: Sequence[Path], settings: Settings, stacks: Path | None = None) -> str:
    """Return the mark of a release: a hash of all that it deploys. It needs no clock and no git.

    Args:
        folders: those of the bundle; a template without one is not for a deployment, and has the mark `sources`.
        settings: the environment's.
        stacks: the folder of the backend's own stacks.
    """
    if not folders:
        return SOURCES
    digest = hashlib.sha256(settings.model_dump_json(exclude={"budget", "deploy", "monitoring"}).encode())
    infrastructure = [STACKS] if stacks is None else [STACKS, stacks]
    for folder in (*folders, *infrastructure):
        # Bytecode of the infrastructure itself depends on who has imported it.
        pattern = "*.py" if folder in infrastructure else "*"
        for path in sorted(each for each in folder.rglob(pattern) if each.is_file()):
            content, name = path.read_bytes(), path.relative_to(folder.parent).as_posix()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:LENGTH]
