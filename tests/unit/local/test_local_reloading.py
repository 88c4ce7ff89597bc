"""Reloading: new code serves once it can be imported, running calls are answered, and wrong code has no effect."""

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dynashard_local.functions import generations
from dynashard_local.functions.generations import Generations, HandlerError
from dynashard_local.functions.local_function import FunctionError, FunctionSpec, LocalFunction
from dynashard_local.reloading import Reloader, Watch
from dynashard_local.workers.worker import Worker, WorkerSpec
from tests.waiting import until

pytestmark = pytest.mark.unit

CODE = """
import os
import time
from pathlib import Path

def handler(event, context):
    if "wait" in event:
        Path(event["begun"]).touch()
        while not Path(event["wait"]).exists():
            time.sleep(0.005)
    return {{"version": {version!r}, "process": os.getpid()}}
"""
WRONG = 'class Thing(Entity, name="thing.v1", key=Key("{id}"), shards=Shards(17)):\n    id: str\n\n\n'


@dataclass
class Checkout:
    """A checkout with one function, and its reloader."""

    root: Path
    said: list[str]
    functions: LocalFunction
    reloader: Reloader
    worker: Worker

    def write(self, version: str, *, path: str = "functions/reloaded/handler.py") -> None:
        (self.root / path).write_text(CODE.format(version=version))

    def invoke(self, event: dict[str, Any] | None = None) -> Any:
        return asyncio.run(self.functions.invoke(event or {}, "request-1"))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checkout]:
    (tmp_path / "functions" / "reloaded").mkdir(parents=True)
    (tmp_path / "layers").mkdir()
    (tmp_path / "functions" / "reloaded" / "handler.py").write_text(CODE.format(version="first"))
    # The package of this checkout is also called `functions`.
    monkeypatch.setattr(sys, "path", [str(tmp_path / "functions"), *sys.path])
    spec = FunctionSpec("reloaded", "reloaded.handler:handler", {}, memory_mb=256)
    functions = LocalFunction(spec, limit=2, log=tmp_path / "api.log")
    monkeypatch.setattr(Generations, "handler", "functions.reloaded.handler:handler")
    said: list[str] = []
    worker = Worker(
        WorkerSpec("tests.unit.local.local_probe", {"FOLDER": str(tmp_path)}, tmp_path / "log", "functions.reloaded"),
        report=said.append,
    )
    reloader = Reloader([functions], [worker], say=said.append, root=tmp_path)
    functions.generations.warm()
    yield Checkout(tmp_path, said, functions, reloader, worker)
    reloader.close()
    worker.close()
    functions.close()


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_changed_code_serves_and_the_old_process_ends(checkout: Checkout) -> None:
    before = checkout.invoke()
    checkout.reloader.start()

    checkout.write("second")
    until(lambda: bool(checkout.said))
    after = checkout.invoke()

    assert (before["version"], after["version"]) == ("first", "second")
    [line] = checkout.said
    assert line.startswith("Reloaded in ")
    assert line.endswith("functions/reloaded/handler.py")
    until(lambda: gone(before["process"]))


def test_changed_code_of_the_same_size_and_time_is_detected(checkout: Checkout) -> None:
    path = checkout.root / "functions/reloaded/handler.py"
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    checkout.invoke()

    checkout.write("other")
    os.utime(path, ns=times)
    checkout.reloader.reload({"functions/reloaded/handler.py"})

    assert checkout.invoke()["version"] == "other"


def test_a_running_call_is_answered_by_the_old_code_and_new_calls_by_the_new(checkout: Checkout) -> None:
    begun, go = checkout.root / "begun", checkout.root / "go"

    async def meet() -> tuple[Any, Any]:
        slow = asyncio.create_task(checkout.functions.invoke({"begun": str(begun), "wait": str(go)}, "1"))
        await asyncio.to_thread(until, begun.exists)
        checkout.write("second")
        await asyncio.to_thread(checkout.reloader.reload, {"functions/reloaded/handler.py"})
        quick = await checkout.functions.invoke({}, "2")
        go.touch()
        return await slow, quick

    slow, quick = asyncio.run(meet())

    assert (slow["version"], quick["version"]) == ("first", "second")
    until(lambda: gone(slow["process"]))


def test_an_import_error_is_reported_in_one_line_and_the_old_code_stays(checkout: Checkout) -> None:
    before = checkout.invoke()

    checkout.write("second")
    line = CODE.count("\n") + 1
    with (checkout.root / "functions/reloaded/handler.py").open("a") as file:
        file.write("raise ValueError('7 is not\\n a power of two')\n")
    checkout.reloader.reload({"functions/reloaded/handler.py"})

    at = f"({checkout.root / 'functions/reloaded/handler.py'}, line {line})"
    assert checkout.said == [f"Not reloaded, so the code from before still serves: ValueError: 7 is not {at}"]
    assert checkout.invoke() == before
    assert "Traceback" in (checkout.root / "api.log").read_text()


def test_a_wrong_declaration_is_reported_where_it_stands_and_not_where_the_library_refuses_it(
    checkout: Checkout,
) -> None:
    path = checkout.root / "functions/reloaded/handler.py"
    path.write_text(f"from dynashard import Entity, Key, Shards\n\n{WRONG}{CODE.format(version='second')}")

    checkout.reloader.reload({"functions/reloaded/handler.py"})

    [said] = checkout.said
    assert "DeclarationError: thing.v1: the shard count is 17" in said
    assert said.endswith(f"({path}, line 3)")


def test_a_failed_reload_is_repeated_after_the_next_change(checkout: Checkout) -> None:
    (checkout.root / "functions/reloaded/handler.py").write_text("from reloaded.missing import handler\n")
    checkout.reloader.reload({"functions/reloaded/handler.py"})

    checkout.write("mended", path="functions/reloaded/missing.py")
    checkout.reloader.reload({"functions/reloaded/missing.py"})

    assert checkout.invoke()["version"] == "mended"
    assert checkout.said[1].endswith("functions/reloaded/handler.py, functions/reloaded/missing.py")


def test_a_call_waits_for_an_old_environment_while_the_code_is_wrong(checkout: Checkout) -> None:
    begun, go = checkout.root / "begun", checkout.root / "go"

    async def meet() -> tuple[Any, Any]:
        slow = asyncio.create_task(checkout.functions.invoke({"begun": str(begun), "wait": str(go)}, "1"))
        await asyncio.to_thread(until, begun.exists)
        (checkout.root / "functions/reloaded/handler.py").write_text("nonsense")
        # There is room for a second environment, but its code cannot be imported.
        second = asyncio.create_task(checkout.functions.invoke({}, "2"))
        await asyncio.to_thread(until, lambda: "nonsense" in (checkout.root / "api.log").read_text())
        go.touch()
        return await slow, await second

    slow, second = asyncio.run(meet())

    assert second["version"] == "first"
    assert second["process"] == slow["process"]


def no_process(*_: Any) -> None:
    raise OSError(24, "Too many open files")


def test_a_call_waits_for_another_environment_while_no_process_can_be_started(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, tried = checkout.root / "begun", checkout.root / "go", checkout.root / "tried"

    def failing(*_: Any) -> None:
        tried.touch()
        no_process()

    async def meet() -> tuple[Any, Any]:
        slow = asyncio.create_task(checkout.functions.invoke({"begun": str(begun), "wait": str(go)}, "1"))
        await asyncio.to_thread(until, begun.exists)
        with monkeypatch.context() as patch:
            patch.setattr(generations, "Environment", failing)
            second = asyncio.create_task(checkout.functions.invoke({}, "2"))
            await asyncio.to_thread(until, tried.exists)
            go.touch()
            return await slow, await second

    slow, second = asyncio.run(meet())
    checkout.write("second")
    checkout.reloader.reload({"functions/reloaded/handler.py"})

    assert second["process"] == slow["process"]
    until(lambda: gone(slow["process"]))


def test_code_is_not_reloaded_while_no_process_can_be_started(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = checkout.invoke()
    checkout.write("second")
    with monkeypatch.context() as patch:
        patch.setattr(generations, "Environment", no_process)
        checkout.reloader.reload({"functions/reloaded/handler.py"})

    assert "Too many open files" in checkout.said[0]
    assert checkout.invoke() == before


def test_a_call_fails_without_an_old_environment(checkout: Checkout) -> None:
    (checkout.root / "functions/reloaded/handler.py").write_text("nonsense")
    spec = FunctionSpec("reloaded", "reloaded.handler:handler", {}, memory_mb=256)
    unused = LocalFunction(spec, limit=2, log=checkout.root / "api.log")

    with pytest.raises(FunctionError, match="cannot be started: NameError"):
        asyncio.run(unused.invoke({}, "request-1"))

    unused.close()


def test_a_change_of_another_function_does_not_reload_this_one(checkout: Checkout) -> None:
    before = checkout.invoke()
    (checkout.root / "functions" / "other").mkdir()
    checkout.write("other", path="functions/other/handler.py")

    checkout.reloader.reload({"functions/other/handler.py"})

    assert checkout.invoke() == before


@pytest.mark.parametrize("path", ["layers/domain/python/domain/samples/users.py", "functions/__init__.py"])
def test_a_change_of_shared_code_reloads_all_functions(checkout: Checkout, path: str) -> None:
    before = checkout.invoke()

    checkout.reloader.reload({path})

    assert checkout.invoke()["process"] != before["process"]


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("packages/cdk/dynashard_cdk/data.py", "Run `make template` and restart"),
        ("packages/local/dynashard_local/run.py", "Restart"),
        ("cdk.json", "Run `make template` and restart"),
    ],
)
def test_a_change_that_needs_a_restart_is_reported_in_one_line(checkout: Checkout, path: str, first: str) -> None:
    before = checkout.invoke()

    checkout.reloader.reload({path})

    [line] = checkout.said
    assert line.startswith(f"{first} `make run` to use {path}")
    assert checkout.invoke() == before


def test_the_names_of_stored_attributes_take_a_reload_and_a_restart(checkout: Checkout) -> None:
    checkout.reloader.reload({"layers/sharding/python/dynashard/schema.py"})

    assert [line.split()[0] for line in checkout.said] == ["Run", "Reloaded"]


def test_a_worker_restarts_with_the_new_code(checkout: Checkout) -> None:
    checkout.worker.start()
    until(lambda: len(list(checkout.root.glob("begun-*"))) == 1)

    checkout.write("second")
    checkout.reloader.reload({"functions/reloaded/handler.py"})

    until(lambda: len(list(checkout.root.glob("begun-*"))) == 2)
    assert len(checkout.said) == 1  # The replaced worker is not reported as one that ended by itself.


def test_a_stack_that_ends_does_not_wait_for_code_that_is_being_imported(checkout: Checkout) -> None:
    importing = checkout.root / "importing"
    code = f"import pathlib, time\npathlib.Path({str(importing)!r}).touch()\ntime.sleep(1e6)\n"
    checkout.reloader.start()

    (checkout.root / "functions/reloaded/handler.py").write_text(code)
    until(importing.exists)
    checkout.reloader.close()

    assert checkout.said == []


def test_prepared_environments_can_be_discarded(checkout: Checkout) -> None:
    before = checkout.invoke()
    prepared = checkout.functions.generations.prepare()

    checkout.functions.generations.discard(prepared)

    assert checkout.invoke() == before


def test_nothing_is_prepared_once_a_function_has_ended(checkout: Checkout) -> None:
    checkout.functions.close()

    with pytest.raises(HandlerError, match="is ending"):
        checkout.functions.generations.prepare()


def test_a_watch_reports_added_changed_and_removed_files_only(tmp_path: Path) -> None:
    (tmp_path / "layers" / "__pycache__").mkdir(parents=True)
    for name in ("same.py", "changed.py", "removed.py", "notes.txt"):
        (tmp_path / "layers" / name).write_text("1")
    watch = Watch(tmp_path, ("layers", "cdk.json", "missing"))
    at_first = watch.changed()

    (tmp_path / "layers" / "changed.py").write_text("22")
    (tmp_path / "layers" / "removed.py").unlink()
    (tmp_path / "layers" / "added.py").write_text("1")
    (tmp_path / "layers" / "notes.txt").write_text("22")
    (tmp_path / "layers" / "__pycache__" / "cached.py").write_text("1")
    (tmp_path / "cdk.json").write_text("{}")
    then = watch.changed()

    assert at_first == set()
    assert then == {"layers/changed.py", "layers/removed.py", "layers/added.py", "cdk.json"}
    assert watch.changed() == set()
