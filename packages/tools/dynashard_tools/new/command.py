"""`dynashard new` and `dynashard upgrade`."""

import re
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from dynashard_local.root import backend_root
from dynashard_tools.counting import plural
from dynashard_tools.failure import WITH_ERRORS, CommandError
from dynashard_tools.new.template import rendered
from dynashard_tools.new.upgrading import Origin
from dynashard_tools.new.upgrading import upgrade as upgraded
from dynashard_tools.version import VERSION

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")


class ConflictsError(CommandError):
    """The release is merged, and some of its changes conflict with the owner's."""

    status: ClassVar[int] = WITH_ERRORS


def new(
    folder: Annotated[Path, typer.Argument(help="The folder of the backend. It must not exist, or be empty.")],
) -> None:
    """Make a backend: a folder with an entity, its tests, and all that serves and deploys it."""
    root = folder.resolve()
    if not _NAME.fullmatch(root.name):
        raise CommandError(f"{root.name!r} cannot be a name: use up to 40 small letters, digits and dashes")
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise CommandError(f"{root} exists and is not empty: name another folder")
    made = Origin(root.name, VERSION, rendered(root.name))
    for place, text in made.files.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    made.write(root)
    print(f"Made {root.name} of {plural(len(made.files), 'file')}. Next:\n  cd {folder}\n  make run")


def upgrade() -> None:
    """Merge what this release changes in the files of the backend with what you have changed.

    Conflicts stand in the files between markers, as those of git; the exit status is 3 then. Nothing is merged twice.
    """
    root = backend_root()
    origin = Origin.of(root)
    if _order(origin.version) > _order(VERSION):
        raise CommandError(f"the backend is of {origin.version}, and this is {VERSION}: install dynashard-tools again")
    if origin.version == VERSION:
        print(f"The backend is of {VERSION} already")
        return
    changes = upgraded(root, origin, Origin(origin.name, VERSION, rendered(origin.name)))
    for what, places in (
        ("changed", changes.written),
        ("removed", changes.removed),
        ("left as it was", changes.kept),
        ("has conflicts", changes.conflicts),
    ):
        for place in places:
            print(f"{place}: {what}")
    if changes.conflicts:
        listed = ", ".join(changes.conflicts)
        raise ConflictsError(f"conflicts in {listed}: edit what stands between <<<<<<< and >>>>>>>")
    print(f"Upgraded from {origin.version} to {VERSION}")


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
