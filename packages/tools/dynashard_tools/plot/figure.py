"""Draws figures into files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from dynashard_tools.failure import CommandError, needs_extra
from dynashard_tools.files import file_errors

Format = Literal["png", "svg"]

_SIZE: Final = (10.0, 6.0)
"""In inches, at 100 dots each."""


def picture_format(path: Path) -> Format:
    """Return the format that the file's suffix names.

    Raises:
        CommandError: it is neither .png nor .svg, or the folder does not exist.
    """
    if path.suffix.lower() not in (".png", ".svg"):
        raise CommandError(f"{path} cannot be drawn: name a file that ends in .png or .svg")
    if not path.parent.is_dir():
        raise CommandError(f"{path} cannot be written: the folder {path.parent} does not exist")
    return "png" if path.suffix.lower() == ".png" else "svg"


@contextmanager
def figure_for(path: Path, title: str) -> Iterator[Any]:
    """Yield a matplotlib figure to draw on, and write it to a file afterwards; an existing file is replaced.

    Raises:
        CommandError: the file cannot be written, or matplotlib is not installed.

    Cost: about half a second for loading matplotlib.
    """
    chosen = picture_format(path)
    with needs_extra("pictures"):
        # Loaded here, so that no other command waits for it.
        from matplotlib import rc_context  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    # The same data give the same file: no random ids, no date.
    with rc_context({"svg.hashsalt": title, "font.size": 9.0}):
        figure = Figure(figsize=_SIZE, dpi=100, layout="constrained")
        figure.suptitle(title)
        yield figure
        with file_errors(path, "written"):
            figure.savefig(path, format=chosen, metadata={"Date": None} if chosen == "svg" else {"Software": None})
