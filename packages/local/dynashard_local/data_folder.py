"""The data folder: one engine at a time uses it, and private files are kept in it."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dynashard_local.errors import LocalStackError

WAIT_SECONDS = 5.0
"""How long to wait for an engine whose owner is gone, because it is being killed."""


@contextmanager
def locked(
    path: Path, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> Iterator[int]:
    """Hold the data folder's lock, and yield its file descriptor.

    The lock is the kernel's, so it never goes stale. A child that inherits the descriptor holds the lock too, even when
    the process that acquired it was killed. filelock does not return the descriptor.

    Raises:
        LocalStackError: another local stack holds it; the message has its process id.
    """
    if sys.platform == "win32":
        raise LocalStackError("The engine does not run on Windows: use WSL, or set DYNAMODB_ENDPOINT.")
    import fcntl  # noqa: PLC0415 - does not exist on Windows, where DYNAMODB_ENDPOINT works without it

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = clock() + WAIT_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                if _alive(owner) or clock() >= deadline:
                    raise LocalStackError(
                        f"{path.parent} is in use by another local stack (process {owner or 'unknown'}): "
                        "stop that one, or set DATA_DIR to another folder."
                    ) from None
                sleep(0.02)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def release(descriptor: int) -> None:
    """Release a lock while children may still have its descriptor open, because nothing uses the data any more."""
    import fcntl  # noqa: PLC0415 - as above

    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _alive(process_id: str) -> bool:
    if not process_id.isdigit():
        return False
    try:
        os.kill(int(process_id), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def kept_file(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the content of a private file; if it does not exist, write it, completely or not at all.

    Raises:
        LocalStackError: the file cannot be read.
    """
    if not path.exists():
        draft = path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_bytes(make())
        draft.replace(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise LocalStackError(
            f"{path} cannot be read ({error.strerror}): remove it, or set another DATA_DIR."
        ) from None
