"""Reserve ports that a test may free and use again while other tests run."""

import fcntl
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

LOWEST, HIGHEST = 20_000, 29_999
"""This range is below the ports that systems assign to programs that ask for any port."""


@contextmanager
def reserved_ports(count: int) -> Iterator[list[int]]:
    """Yield free ports that no other caller of this function gets, in this run or in a parallel one."""
    folder = Path(tempfile.gettempdir()) / "dynashard-test-ports"
    folder.mkdir(exist_ok=True)
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            port = random.randint(LOWEST, HIGHEST)
            lock = held.enter_context((folder / str(port)).open("a"))
            if _locked(lock) and _free(port):
                ports.append(port)
        yield ports


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
