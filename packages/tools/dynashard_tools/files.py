"""Files that commands read and write: errors as one line, and files that are written completely or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dynashard_tools.failure import CommandError


@contextmanager
def file_errors(path: Path | str, verb: str) -> Iterator[None]:
    """End the command with one line if a file cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path} cannot be {verb}: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file next to its place, and move it there when the block has ended without an error.

    Raises:
        CommandError: it cannot be written, or is a device, a pipe or a folder, which would be lost.
    """
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is not a regular file, and would be replaced by one: name another file")
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    with file_errors(path, "written"):
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
