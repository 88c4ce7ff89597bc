"""Start processes so that the signals of a test reach them, however the tests were started."""

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

STOPS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_as_by_default(*, but_ignoring: Collection[signal.Signals] = ()) -> Iterator[None]:
    """Have the processes that are started within the block end by SIGINT and SIGTERM, as by default.

    A shell without job control starts background jobs with SIGINT ignored, and every process they start inherits
    that: `make test &` in a script does.

    Args:
        but_ignoring: those of the two that the processes ignore from their start.
    """
    before = {number: signal.getsignal(number) for number in STOPS}
    try:
        for number in STOPS:
            # A handler of this process is no handler of the program that is started: there it is the default.
            signal.signal(number, signal.SIG_IGN if number in but_ignoring else signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
