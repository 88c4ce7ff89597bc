"""Reloads functions and workers when their code changes; until it can be imported, the old code serves."""

import importlib.util
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Final

from dynashard_local.errors import LocalStackError
from dynashard_local.functions.generations import Generation, Generations, HandlerError
from dynashard_local.functions.local_function import LocalFunction
from dynashard_local.root import backend_root
from dynashard_local.workers.worker import Worker

POLL_SECONDS: Final = 0.5
SETTLE_SECONDS: Final = 0.1
"""How long files must be unchanged, because an editor or a checkout writes several."""
_RELOADED: Final = ("layers", "functions")
_RESTARTED: Final = ("packages/local",)
_INFRASTRUCTURE: Final = ("app.py", "cdk.json", "packages/cdk", "stacks")
"""What the committed templates are made from."""
_SCHEMA: Final = "layers/sharding/python/dynashard/schema.py"
_SHOWN: Final = 3
"""Files that the message names."""


class Reloader:
    """Watches the checkout, and starts functions and workers again when their code changes.

    New environments are started while the old ones serve. When those of all functions have imported their handlers,
    calls go to them, and the old ones end after they answer. If a handler cannot be imported, nothing changes, and one
    line says why. Workers are restarted after the functions.
    """

    def __init__(
        self,
        functions: Iterable[LocalFunction],
        workers: Iterable[Worker],
        *,
        say: Callable[[str], None],
        root: Path | None = None,
    ) -> None:
        self._functions = list(functions)
        self._workers = list(workers)
        self._say = say
        self._root = backend_root() if root is None else root
        self._watch = Watch(self._root, (*_RELOADED, *_RESTARTED, *_INFRASTRUCTURE))
        self._failed: set[str] = set()
        self._ending = Event()
        self._thread = Thread(target=self._run, name="reload", daemon=True)

    def start(self) -> None:
        """Start to watch; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """Stop watching, and end the functions, one of which may be starting."""
        self._ending.set()
        for function in self._functions:
            function.abandon()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(POLL_SECONDS):
            changed = self._watch.changed()
            if not changed:
                continue
            while not self._ending.wait(SETTLE_SECONDS) and (more := self._watch.changed()):
                changed |= more
            if not self._ending.is_set():
                self.reload(changed)

    def reload(self, changed: set[str]) -> None:
        """Reload what changed files concern, given by their paths within the checkout."""
        if fixed := sorted(path for path in changed if path == _SCHEMA or not path.startswith(_RELOADED)):
            first = "Run `make template` and restart" if any(map(_in_templates, fixed)) else "Restart"
            self._say(f"{first} `make run` to use {_named(fixed)}: tables, routes and the stack are made at its start.")
        self._failed |= {path for path in changed if path.startswith(_RELOADED)}
        if self._failed:
            self._reload(sorted(self._failed))

    def _reload(self, changed: Sequence[str]) -> None:
        begun = time.monotonic()
        for path in changed:
            # Python uses bytecode if the source has the same size and, in whole seconds, the same time.
            Path(importlib.util.cache_from_source(str(self._root / path))).unlink(missing_ok=True)
        functions = [each.generations for each in self._functions]
        functions = [each for each in functions if each.in_use and _concerns(changed, each.handler)]
        try:
            prepared = _all_prepared(functions)
        except HandlerError as error:
            if not self._ending.is_set():
                self._say(f"Not reloaded, so the code from before still serves: {error.problem}")
            return
        for function, generation in prepared:
            function.replace(generation)
        for worker in self._workers:
            if _concerns(changed, f"{worker.function}."):
                worker.restart()
        self._failed.clear()
        self._say(f"Reloaded in {time.monotonic() - begun:.1f} s: {_named(changed)}")


def _all_prepared(functions: Iterable[Generations]) -> list[tuple[Generations, Generation]]:
    prepared: list[tuple[Generations, Generation]] = []
    try:
        for function in functions:
            prepared.append((function, function.prepare()))  # noqa: PERF401 - one by one, to be discarded after an error
    except LocalStackError:
        for function, generation in prepared:
            function.discard(generation)
        raise
    return prepared


def _concerns(changed: Iterable[str], handler: str) -> bool:
    """Whether code of a handler has changed: of its function, of all functions, or of a layer."""
    parts = (path.split("/") for path in changed)
    return any(
        path[0] == "layers" or len(path) == len(("functions", "file.py")) or handler.startswith(f"functions.{path[1]}.")
        for path in parts
    )


def _in_templates(path: str) -> bool:
    """Whether a file is among what the committed templates are made from."""
    return path == _SCHEMA or path.startswith(_INFRASTRUCTURE)


def _named(paths: Sequence[str]) -> str:
    more = len(paths) - _SHOWN
    return ", ".join(paths[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


Stamp = tuple[int, int]
"""When a file was changed, in nanoseconds, and how many bytes it has."""


class Watch:
    """Finds changes of Python files in folders, and of single files, which need not exist yet.

    It polls, which takes a few milliseconds, needs no package, and works on every file system, also on those that are
    shared with a container or a virtual machine.
    """

    def __init__(self, root: Path, places: Iterable[str]) -> None:
        self._root = root
        self._places = tuple(places)
        self._seen = self._stamps()

    def changed(self) -> set[str]:
        """Return the paths within the checkout that were added, changed or removed since the last call."""
        before, self._seen = self._seen, self._stamps()
        return {path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path)}

    def _stamps(self) -> dict[str, Stamp]:
        found = {}
        for place in self._places:
            for path in _files(os.path.join(self._root, place)):  # noqa: PTH118 - many times as fast as pathlib
                try:
                    stat = os.stat(path)  # noqa: PTH116 - as above
                except OSError:
                    continue  # It does not exist.
                found[os.path.relpath(path, self._root)] = (stat.st_mtime_ns, stat.st_size)
        return found


def _files(place: str) -> Iterator[str]:
    if os.path.isfile(place):  # noqa: PTH113 - as above
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(".py"):
                yield os.path.join(folder, name)  # noqa: PTH118 - as above
