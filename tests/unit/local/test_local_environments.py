"""Execution environments run a function as Lambda does."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore
from typing import Any

import orjson
import pytest
import uvloop

from dynashard_local.errors import LocalStackError
from dynashard_local.functions.environment import Environment, Lifeline, NotBegunError, ProcessEndedError, work_of
from dynashard_local.functions.local_function import (
    FunctionError,
    FunctionSpec,
    LambdaContext,
    LocalFunction,
    OverloadedError,
    PayloadTooLargeError,
)
from tests.depth import examples
from tests.waiting import until

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _echo_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])


def environments_of(
    tmp_path: Path, *, handler: str = "local_echo:handler", timeout_seconds: int = 30, limit: int = 2
) -> LocalFunction:
    spec = FunctionSpec("echo", handler, {"GIVEN": "yes"}, timeout_seconds=timeout_seconds, memory_mb=256)
    return LocalFunction(spec, limit=limit, log=tmp_path / "api.log")


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[LocalFunction]:
    environments = environments_of(tmp_path)
    yield environments
    environments.close()


def invoke(environments: LocalFunction, event: dict[str, Any]) -> Any:
    return asyncio.run(environments.invoke(event, "request-1"))


def test_a_function_gets_the_event_its_context_and_only_its_own_variables(
    echo: LocalFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")

    answer = invoke(echo, {"a": [1, None, "\u00eb"]})

    assert answer["event"] == {"a": [1, None, "\u00eb"]}
    assert answer["environment"]["GIVEN"] == "yes"
    assert "AWS_PROFILE" not in answer["environment"]
    assert (answer["name"], answer["request_id"]) == ("echo", "request-1")
    assert answer["arn"] == "arn:aws:lambda:us-east-1:000000000000:function:echo"
    assert 0 < answer["remaining_ms"] <= 30_000


def test_two_events_at_once_never_share_a_process(echo: LocalFunction, tmp_path: Path) -> None:
    mine, other = str(tmp_path / "a"), str(tmp_path / "b")

    async def both() -> tuple[Any, Any]:
        return await asyncio.gather(
            echo.invoke({"do": "meet", "mine": mine, "other": other}, "1"),
            echo.invoke({"do": "meet", "mine": other, "other": mine}, "2"),
        )

    first, second = asyncio.run(both())

    assert first["process"] != second["process"]


def test_slow_events_run_at_once_on_one_processor(tmp_path: Path) -> None:
    spec = FunctionSpec("echo", "local_echo:handler", {}, memory_mb=256)
    environments = LocalFunction(spec, limit=2, log=tmp_path / "api.log", processors=1)

    # They meet only if both run, and no call ends before.
    test_two_events_at_once_never_share_a_process(environments, tmp_path)

    environments.close()


def test_quick_events_share_an_environment_on_one_processor(tmp_path: Path) -> None:
    spec = FunctionSpec("echo", "local_echo:handler", {}, memory_mb=256)
    environments = LocalFunction(spec, limit=1, log=tmp_path / "api.log", processors=1)
    environments.generations.warm()

    async def several() -> list[Any]:
        return await asyncio.gather(*(environments.invoke({"n": number}, "1") for number in range(20)))

    answers = asyncio.run(several())
    environments.close()

    assert [answer["event"] for answer in answers] == [{"n": number} for number in range(20)]


def test_the_output_of_a_function_is_written_to_its_log(echo: LocalFunction, tmp_path: Path) -> None:
    invoke(echo, {"do": "print"})

    assert "printed print" in (tmp_path / "api.log").read_text()


def test_an_error_of_the_function_is_logged_and_the_next_event_is_served(echo: LocalFunction, tmp_path: Path) -> None:
    with pytest.raises(FunctionError, match="raised an error"):
        invoke(echo, {"do": "raise"})

    assert "RuntimeError: as requested" in (tmp_path / "api.log").read_text()
    assert invoke(echo, {"n": 1})["event"] == {"n": 1}


def test_a_function_that_ends_its_process_is_replaced(echo: LocalFunction) -> None:
    with pytest.raises(FunctionError, match="process ended"):
        invoke(echo, {"do": "end"})

    assert invoke(echo, {"n": 1})["event"] == {"n": 1}


def test_no_call_fails_after_an_idle_environment_was_killed(echo: LocalFunction) -> None:
    killed = invoke(echo, {})["process"]
    for _ in range(3):
        os.kill(killed, signal.SIGKILL)

        answer = invoke(echo, {"n": 1})

        assert answer["event"] == {"n": 1}
        assert answer["process"] != killed
        killed = answer["process"]


def test_a_killed_environment_says_whether_it_had_begun(tmp_path: Path) -> None:
    spec = FunctionSpec("echo", "local_echo:handler", {}, memory_mb=256)

    def ended(payload: bytes, *, stopped: bool) -> type[Exception]:
        environment = Environment(spec, tmp_path / "api.log", life)
        process = orjson.loads(environment.invoke(work_of(b"{}", "1")))["process"]
        if stopped:
            os.kill(process, signal.SIGSTOP)
        environment.send(work_of(payload, "2"))
        if stopped:
            os.kill(process, signal.SIGKILL)
        with pytest.raises((NotBegunError, ProcessEndedError)) as raised:
            environment.receive()
        environment.end()
        return raised.type

    life = Lifeline()
    assert ended(b"{}", stopped=True) is NotBegunError
    assert ended(b'{"do": "end"}', stopped=False) is ProcessEndedError
    life.end()


def test_only_the_caller_of_a_killed_environment_gets_an_error(echo: LocalFunction, tmp_path: Path) -> None:
    mine, waited_for = tmp_path / "mine", tmp_path / "waited for"

    async def one_dies() -> list[Any]:
        lives = echo.invoke({"do": "meet", "mine": str(mine), "other": str(waited_for)}, "1")
        dies = echo.invoke({"do": "end"}, "2")
        calls = [asyncio.create_task(call) for call in (lives, dies)]
        await asyncio.wait([calls[1]])
        waited_for.touch()
        return await asyncio.gather(*calls, return_exceptions=True)

    lived, died = asyncio.run(one_dies())

    assert lived["event"]["mine"] == str(mine)
    assert isinstance(died, FunctionError)
    assert invoke(echo, {"n": 1})["event"] == {"n": 1}


def test_a_process_that_always_ends_at_its_start_fails_the_call_in_bounded_time(tmp_path: Path) -> None:
    spec = FunctionSpec("echo", "local_echo:handler", {}, memory_mb=256)
    environments = LocalFunction(spec, limit=1, log=tmp_path / "no such folder" / "api.log")

    with pytest.raises(FunctionError, match="process ended"):
        invoke(environments, {})

    environments.close()


def test_a_full_queue_refuses_expensive_calls_before_cheap_ones(tmp_path: Path) -> None:
    spec = FunctionSpec("echo", "local_echo:handler", {}, memory_mb=256)
    environments = LocalFunction(spec, limit=1, log=tmp_path / "api.log", places=4)
    go = tmp_path / "go"

    async def crowd() -> dict[bool, list[Any]]:
        blocked = asyncio.create_task(
            environments.invoke({"do": "meet", "mine": str(tmp_path / "in"), "other": str(go)}, "0")
        )
        calls = {
            expensive: [asyncio.create_task(environments.invoke({}, "n", expensive=expensive)) for _ in range(4)]
            for expensive in (True, False)
        }
        refused = [calls[True][1:], calls[False][3:]]
        await asyncio.wait([call for some in refused for call in some])
        go.touch()
        await blocked
        return {name: await asyncio.gather(*some, return_exceptions=True) for name, some in calls.items()}

    answers = asyncio.run(crowd())
    environments.close()

    refused = {name: [isinstance(each, OverloadedError) for each in some] for name, some in answers.items()}
    assert refused == {True: [False, True, True, True], False: [False, False, False, True]}


def test_a_function_is_interrupted_at_its_timeout(tmp_path: Path) -> None:
    environments = environments_of(tmp_path, timeout_seconds=1)

    with pytest.raises(FunctionError):
        invoke(environments, {"do": "hang"})

    environments.close()
    assert "the function's timeout has passed" in (tmp_path / "api.log").read_text()


def test_closing_ends_running_calls(tmp_path: Path) -> None:
    environments = environments_of(tmp_path)
    started = tmp_path / "started"

    async def close_while_it_runs() -> None:
        event = {"do": "meet", "mine": str(started), "other": str(tmp_path / "never")}
        running = asyncio.create_task(environments.invoke(event, "1"))
        while not started.exists():  # noqa: ASYNC110 - another process says it
            await asyncio.sleep(0.005)
        environments.close()
        await running

    with pytest.raises(FunctionError, match="process ended"):
        asyncio.run(close_while_it_runs())


def test_an_event_larger_than_a_buffer_of_the_system_is_answered(echo: LocalFunction) -> None:
    invoke(echo, {})

    assert invoke(echo, {"x": "x" * 1_000_000})["event"] == {"x": "x" * 1_000_000}


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_loops_and_threads_take_turns_with_one_environment(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    environments = environments_of(tmp_path, limit=1)
    # Threads serve those that are larger than a buffer.
    sizes = [1, 100_000, 2, 3, 100_001, 4] * 3

    turns = {"a": Semaphore(1), "b": Semaphore(0)}

    async def ask(name: str, following: str) -> list[Any]:
        answers = []
        for size in sizes:
            # The loop runs while it waits, so it sees that something arrives for the other one.
            await asyncio.to_thread(turns[name].acquire, timeout=60)
            async with asyncio.timeout(60):
                answers.append(await environments.invoke({"name": name, "x": "x" * size}, f"{name}{size}"))
            turns[following].release()
        return answers

    def run(name: str, following: str) -> list[Any]:
        # A loop in debug mode refuses work from another thread.
        with asyncio.Runner(loop_factory=new_loop, debug=True) as runner:
            return runner.run(ask(name, following))

    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(run, "ab", "ba"))
    environments.close()

    for name, found in zip("ab", answers, strict=True):
        assert [(each["event"]["name"], len(each["event"]["x"]), each["request_id"]) for each in found] == [
            (name, size, f"{name}{size}") for size in sizes
        ]
    assert len({each["process"] for found in answers for each in found}) == 1


def test_environments_that_were_killed_leave_no_descriptors_open(echo: LocalFunction) -> None:
    def descriptors() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    async def kill() -> list[int]:
        counts = []
        for _ in range(examples(8, default=4)):
            os.kill((await echo.invoke({}, "1"))["process"], signal.SIGKILL)
            await echo.invoke({}, "2")
            counts.append(descriptors())
        return counts

    counts = asyncio.run(kill())

    # The loop may not have closed the last one yet. One more for each that was killed would be at least three.
    assert counts[-1] <= counts[0] + 1


def test_a_caller_that_goes_away_leaves_its_environment_to_the_next(tmp_path: Path) -> None:
    environments = environments_of(tmp_path, limit=1)
    begun, go = tmp_path / "begun", tmp_path / "go"

    async def leave() -> Any:
        process = (await environments.invoke({}, "1"))["process"]
        event = {"do": "meet", "mine": str(begun), "other": str(go)}
        leaving = asyncio.create_task(environments.invoke(event, "2"))
        waiting = asyncio.create_task(environments.invoke({"do": "end"}, "3"))
        following = asyncio.create_task(environments.invoke({"n": 4}, "4"))
        await asyncio.to_thread(until, begun.exists)
        leaving.cancel()
        waiting.cancel()
        go.touch()
        return process, await following

    process, followed = asyncio.run(leave())
    environments.close()

    # The call that was cancelled while it waited was never begun, or the process would have ended.
    assert (followed["process"], followed["event"]) == (process, {"n": 4})


def test_lambdas_limits_of_six_megabytes_hold_in_both_directions(echo: LocalFunction) -> None:
    with pytest.raises(PayloadTooLargeError):
        invoke(echo, {"x": "x" * (6 * 1024 * 1024)})
    with pytest.raises(FunctionError, match="over 6 MB"):
        invoke(echo, {"do": "grow", "bytes": 6 * 1024 * 1024})


@pytest.mark.parametrize("handler", ["local_missing:handler", "local_echo:missing"])
def test_a_handler_that_cannot_be_imported_is_named_at_the_start(tmp_path: Path, handler: str) -> None:
    environments = environments_of(tmp_path, handler=handler)

    with pytest.raises(LocalStackError, match=f"{handler} cannot be started .*missing.*: see .*api.log"):
        environments.generations.warm()

    environments.close()


def test_the_remaining_time_never_falls_below_zero() -> None:
    context = LambdaContext("f", 128, "id", 10.0, clock=lambda: 10.5)

    assert context.get_remaining_time_in_millis() == 0
