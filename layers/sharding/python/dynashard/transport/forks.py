"""What objects renew in a process that was forked from theirs, before anything else runs in it.

`os.fork` copies the sockets of a process: parent and child would write to one connection and read each other's answers.
It copies locks as they are, but of all threads only the one that forks: a lock that another thread held is never
released. So sockets are closed and locks are made anew. Closing a copy neither ends the connection of the parent nor
its TLS session, because nothing is sent for it.

This costs requests nothing, unlike a comparison of process ids for each of them, and it comes in time for locks too.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_RENEWED: Final[WeakKeyDictionary[Any, Callable[[Any], object]]] = WeakKeyDictionary()


def after_fork(owner: T, renew: Callable[[T], object]) -> None:
    """Call `renew` with an object in each process that is forked while the object exists.

    It must not wait for a lock, and must not refer to the object. Each object has one such function.
    """
    _RENEWED[owner] = renew


def own_lock(owner: object) -> Lock:
    """Return a lock for the attribute `_lock` of an object, which is replaced by another one in forked processes."""
    after_fork(owner, lambda each: setattr(each, "_lock", Lock()))
    return Lock()


def _begin_child() -> None:
    for owner, renew in list(_RENEWED.items()):
        # A socket may be closed already, or be broken.
        with suppress(OSError):
            renew(owner)


os.register_at_fork(after_in_child=_begin_child)
