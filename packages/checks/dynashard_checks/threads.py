"""Threads whose errors are not lost: a check passes only if all of its actors have come to their end."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def at_work(*bodies: Callable[[], object]) -> Iterator[None]:
    """Run functions in threads of their own during a block, and wait for them. They end when the block says so.

    Raises:
        Exception: the first of their errors, unless the block has one of its own. `threading.Thread` only prints it.
    """
    with ThreadPoolExecutor(len(bodies)) as pool:
        running = [pool.submit(body) for body in bodies]
        yield
    for each in running:
        each.result()
