"""Start processes so that the signals of a test reach them, even if the tests run in the background."""

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

STOPS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_as_by_default(*, but_ignoring: Collection[signal.Signals] = ()) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the processes that are started within the block, as by default.

    A shell without job control starts background jobs with SIGINT ignored, as in a script with `make test &`. Every
    process that they start inherits this.

    Args:
        but_ignoring: those of the two signals that the processes ignore from their start.
    """
    before = {number: signal.getsignal(number) for number in STOPS}
    try:
        for number in STOPS:
            # A started program does not inherit handlers, so a handler here becomes the default there.
            signal.signal(number, signal.SIG_IGN if number in but_ignoring else signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
