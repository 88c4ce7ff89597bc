"""The clients of the comparison on one canned server, as contenders of rows."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import methodcaller

from dynashard_lab.bench.clients.interface import CLIENTS, Answer, Client, load, load_class
from dynashard_lab.bench.measure import Here
from dynashard_lab.bench.stored import SHARDS

_missing: set[str] = set()


def installed(names: Sequence[str]) -> list[str]:
    """Return those of the names whose packages are installed here, and print which are not, once each."""
    found = []
    for name in names:
        try:
            load_class(name)
        except ModuleNotFoundError as error:
            if name not in _missing:
                print(f"left out: {name} ({error.name} is not installed here; `make bench` has it)", file=sys.stderr)
            _missing.add(name)
        else:
            found.append(name)
    return found


@contextmanager
def clients(url: str, *, shards: int = SHARDS, names: Sequence[str] = tuple(CLIENTS)) -> Iterator[dict[str, Client]]:
    """Open the clients that are installed, by name, and close them at the end of the block."""
    opened = {name: load(name, url, shards=shards) for name in installed(names)}
    try:
        yield opened
    finally:
        for client in opened.values():
            client.close()


def contenders(opened: Mapping[str, Client], operation: str) -> list[Here]:
    """Return those clients as contenders that can do an operation of `Client` or `ReadsAttached`, such as `get`."""
    run: Callable[[Client], Answer] = methodcaller(operation)
    return [
        Here(name, partial(run, client), client.loop) for name, client in opened.items() if hasattr(client, operation)
    ]
