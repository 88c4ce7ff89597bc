"""One deadline for each operation: a public method, with all of its requests, pauses and reads of evidence."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from dynashard.repository.store import Store
from dynashard.transport.deadline import within


class _OnStore(Protocol):
    _store: Store


S = TypeVar("S", bound=_OnStore)
P = ParamSpec("P")
R = TypeVar("R")


def write_operation(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Bound a method by the store's longest operation, a share of it kept for evidence after a lost answer."""

    @wraps(method)
    def bounded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with within(self._store.operation_seconds, reserve=True):
            return method(self, *args, **kwargs)

    return bounded


def read_operation(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Bound a method by the store's longest operation."""

    @wraps(method)
    def bounded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with within(self._store.operation_seconds):
            return method(self, *args, **kwargs)

    return bounded
