"""Bundles whose layers and functions say in each answer which release they are of, and clients that read it."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from tests.e2e.deployment import PREFIX, Deployment
from tests.e2e.local_process import ROOT
from tests.waiting import HANG_SECONDS

HEADER = "x-release-marks"
TENANT = "released"
_MARKED = """

from domain.mark import MARK as _LAYER  # noqa: E402
from functions.{name}.mark import MARK as _FUNCTION  # noqa: E402

_unmarked = handler


def handler(event, context):
    answer = _unmarked(event, context)
    answer{member}["{header}"] = f"{{_FUNCTION}} {{_LAYER}}"
    return answer
"""
MEMBERS = {"api": '["headers"]', "commands": ""}
"""Where the answer of a function takes the marks."""


def marked_bundle(folder: Path, mark: str) -> Path:
    """Copy what make has built, with this mark in the layer of the entities and in the functions that answer."""
    shutil.copytree(ROOT / "build" / "host", folder)
    (folder / "domain" / "python" / "domain" / "mark.py").write_text(f"MARK = {mark!r}\n")
    for name, member in MEMBERS.items():
        place = folder / "functions" / name / "functions" / name
        (place / "mark.py").write_text(f"MARK = {mark!r}\n")
        handler = place / "handler.py"
        handler.write_text(handler.read_text() + _MARKED.format(name=name, member=member, header=HEADER))
        # The bytecode of the bundle is not compared with its source.
        for compiled in place.glob("__pycache__/handler.*.pyc"):
            compiled.unlink()
    return folder


class Callers:
    """Clients over HTTP and by direct invocation that call until they are stopped.

    Attributes:
        marks: how many answers had which marks, of the function and of the layer.
        failures: answers that were not expected.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.marks, self.failures = Counter[str](), list[str]()
        self._deployment = deployment
        self._stopped, self._lock = Event(), Lock()
        targets = (self._over_http, self._over_http, self._directly)
        self._threads = [Thread(target=self._run, args=[each, number]) for number, each in enumerate(targets)]

    @contextmanager
    def calling(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in self._threads:
                thread.join(HANG_SECONDS)

    def seen(self, marks: str) -> int:
        """How many answers had these marks so far."""
        with self._lock:
            return self.marks[marks]

    def _run(self, call: Callable[[int], list[str]], number: int) -> None:
        try:
            while not self._stopped.is_set():
                seen = call(number)
                with self._lock:
                    self.marks.update(seen)
        except Exception as error:  # noqa: BLE001 - any failure of a caller fails the test
            self.failures.append(repr(error))

    def _over_http(self, number: int) -> list[str]:
        with self._deployment.tenant(TENANT) as client:
            created = client.post("/v1/users", json={"email": f"u{number}@e.com", "display_name": "U"})
            created.raise_for_status()
            read = client.get(created.headers["location"])
            read.raise_for_status()
        return [created.headers[HEADER], read.headers[HEADER]]

    def _directly(self, _: int) -> list[str]:
        function = self._deployment.outputs[f"{PREFIX}-Commands"]["CommandsFunction"]
        return [invoked(self._deployment, function)[HEADER]]


def invoked(deployment: Deployment, function: str) -> dict[str, Any]:
    """Return the answer of the function for direct invocation, by its name or with a qualifier."""
    request = {"operation": "count", "entity": "users", "tenant_id": TENANT}
    answered = deployment.aws.client("lambda").invoke(FunctionName=function, Payload=json.dumps(request))
    answer: dict[str, Any] = json.loads(answered["Payload"].read())
    assert answer["ok"], answer
    return answer
