"""Carries resizes out in the process of a command, for tables that no worker looks after."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import typer

from dynashard.resharding import Resharder
from dynashard.resharding.driver import drive
from dynashard_tools.connection import Backend


@contextmanager
def driven(backend: Backend, resharder: Resharder) -> Iterator[None]:
    """Carry out all resizes of a backend within the block, if it has no worker that does.

    At the end of the block, work that has begun is completed, which takes at most about 3 seconds. Cost: as `drive`.
    """
    if not backend.drives:
        yield
        return
    ending = Event()

    def work() -> None:
        drive(resharder, stop=ending.is_set, sleep=resharder.runtime.sleep, log=lambda line: typer.echo(line, err=True))

    thread = Thread(target=work, name="dynashard-resharding", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
