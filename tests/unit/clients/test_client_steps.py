"""What the client decides, without a connection: the requests that follow from answers, under both faces."""

import ast
import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import dynashard_client
from dynashard_client import (
    AsyncClient,
    AsyncItems,
    Client,
    ConfigurationError,
    Item,
    Items,
    OutcomeUnknownError,
    RefusedError,
    Retries,
)
from dynashard_client.errors import OverloadedError
from dynashard_client.resource import Resource
from dynashard_client.rest_steps import HttpAnswer, HttpRequest, RestApi, lost
from dynashard_client.steps import Request, Steps, awaited, run

pytestmark = pytest.mark.unit

ADA = HttpAnswer(201, {}, b'{"id": "ada", "revision": "r1"}')
NO_ANSWER = HttpAnswer(0, {}, b"")
"""In place of an answer that does not come."""
ROOT = Path(dynashard_client.__file__).parent
WITHOUT_IO = ("item_steps", "rest_steps", "listings", "resuming", "batches", "answers", "keys", "steps")
SENDS = {"urllib3", "httpx", "asyncio", "socket", "ssl", "time", "threading", "botocore", "http"}


class User(Item, path="users"):
    id: str | None = None


class Scripted:
    """Answers requests by a script, and notes them with the pauses between them."""

    def __init__(self, *answers: HttpAnswer) -> None:
        self._api = RestApi("https://api")
        self._answers = list(answers)
        self.requests: list[HttpRequest] = []
        self.pauses: list[float] = []

    def answer(self, request: HttpRequest) -> HttpAnswer:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if answer is NO_ANSWER:
            raise lost("reset")
        return answer

    def ask(self, resource: Resource[Any], request: Request) -> Any:
        return run(self._api.ask(resource, request), self.answer)

    def call(self, name: str, request: Request) -> Any:
        return self._api.call(name, request)

    def close(self) -> None:
        """Do nothing: there is no connection."""


class AsyncScripted:
    """The same for the face with `await`."""

    def __init__(self, script: Scripted) -> None:
        self._script = script

    async def ask(self, resource: Resource[Any], request: Request) -> Any:
        async def answer(sent: HttpRequest) -> HttpAnswer:
            return self._script.answer(sent)

        return await awaited(self._script._api.ask(resource, request), answer)

    async def call(self, name: str, request: Request) -> Any:
        return self._script.call(name, request)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


@pytest.fixture(params=["sync", "async"])
def users(request: pytest.FixtureRequest) -> Callable[[Scripted], Callable[..., Any]]:
    """Return what calls a method of the items of users under one of both faces."""

    def using(script: Scripted) -> Callable[..., Any]:
        async def noted(seconds: float) -> None:
            script.pauses.append(seconds)

        policy = Retries(sleep=script.pauses.append, sleep_async=noted, random=lambda: 0.5)
        if request.param == "sync":
            items = Client(script, retries=policy).collection(User)
            return lambda name, *args, **named: getattr(items, name)(*args, **named)
        items_async = AsyncClient(AsyncScripted(script), retries=policy).collection(User)

        async def called(name: str, *args: Any, **named: Any) -> Any:
            return await getattr(items_async, name)(*args, **named)

        return lambda name, *args, **named: asyncio.run(called(name, *args, **named))

    return using


Using = Callable[[Scripted], Callable[..., Any]]


def problem(status: int, code: str, *headers: tuple[str, str], **more: Any) -> HttpAnswer:
    body = json.dumps({"code": code, "detail": "Why.", **more}).encode()
    return HttpAnswer(status, {"Content-Type": "application/problem+json", **dict(headers)}, body)


@pytest.mark.parametrize(
    "refusal",
    [problem(503, "overloaded", ("Retry-After", "7")), problem(429, "throttled", ("Retry-After", "7"))],
    ids=["overloaded", "throttled"],
)
def test_a_refusal_for_now_is_waited_out_as_long_as_its_header_says(users: Using, refusal: HttpAnswer) -> None:
    script = Scripted(refusal, refusal, ADA)

    assert users(script)("get", "ada").id == "ada"
    assert script.pauses == [7.1, 7.2]


@pytest.mark.parametrize("header", ["soon", "1.5", "-1", "\N{SUPERSCRIPT TWO}", ""])
def test_a_header_that_names_no_whole_seconds_is_not_waited_for(users: Using, header: str) -> None:
    script = Scripted(problem(503, "overloaded", ("Retry-After", header)))

    with pytest.raises(OverloadedError):
        users(script)("get", "ada")

    assert script.pauses == []


def test_the_gateway_is_waited_for_a_second(users: Using) -> None:
    script = Scripted(HttpAnswer(429, {}, b"{}"), ADA)

    users(script)("put", User(id="ada"))

    assert script.pauses == [1.1]


def test_a_create_is_sent_again_with_the_same_key(users: Using) -> None:
    script = Scripted(NO_ANSWER, HttpAnswer(502, {}, b""), problem(500, "internal_error"), ADA)

    users(script)("create", User(id="ada"))

    keys = {request.headers["Idempotency-Key"] for request in script.requests}
    assert (len(script.requests), len(keys)) == (4, 1)
    assert script.pauses == [0.1, 0.2, 0.4]


def test_two_creates_have_two_keys(users: Using) -> None:
    script = Scripted(ADA, ADA)
    call = users(script)

    for _ in range(2):
        call("create", User(id="ada"))

    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 2


@pytest.mark.parametrize("name", ["put", "update", "delete"])
def test_a_write_without_an_answer_is_not_sent_again(users: Using, name: str) -> None:
    script = Scripted(NO_ANSWER)
    arguments: Sequence[Any] = (User(id="ada"),) if name == "put" else ("ada", {}) if name == "update" else ("ada",)

    with pytest.raises(OutcomeUnknownError, match="reset"):
        users(script)(name, *arguments)

    assert len(script.requests) == 1


MOVED = HttpAnswer(301, {"Content-Type": "text/html"}, b"<html>Moved</html>")
OF_ANOTHER = HttpAnswer(200, {"Content-Type": "text/html"}, b"<html>Welcome</html>")


@pytest.mark.parametrize("answer", [MOVED, HttpAnswer(302, {}, b"")], ids=["a page", "nothing"])
def test_a_redirect_is_a_refusal_that_doubts_the_address(users: Using, answer: HttpAnswer) -> None:
    script = Scripted(answer)

    with pytest.raises(RefusedError, match=f"answered {answer.status}.*address right") as refused:
        users(script)("get", "ada")

    assert (refused.value.status, len(script.requests)) == (answer.status, 1)


def test_an_answer_that_is_not_json_is_no_answer(users: Using) -> None:
    assert users(Scripted(OF_ANOTHER, ADA))("get", "ada").id == "ada"
    with pytest.raises(OutcomeUnknownError, match="status 200 without valid JSON"):
        users(Scripted(OF_ANOTHER))("put", User(id="ada"))


def test_an_unknown_outcome_is_proved_by_the_revision_that_a_read_shows(users: Using) -> None:
    unknown = problem(503, "outcome_unknown", details={"revision": "r1"})

    assert users(Scripted(unknown, ADA))("update", "ada", {}).revision == "r1"
    script = Scripted(unknown, HttpAnswer(200, {}, b'{"id": "ada", "revision": "r2"}'))
    with pytest.raises(OutcomeUnknownError):
        users(script)("update", "ada", {})
    assert [request.method for request in script.requests] == ["PATCH", "GET"]


def test_a_backend_without_batches_is_asked_for_each_item_alone(users: Using) -> None:
    script = Scripted(problem(405, "method_not_allowed"), ADA, problem(404, "not_found"))

    outcomes = users(script)("batch_get", ["ada", "bob"])

    assert [outcome.ok for outcome in outcomes] == [True, False]
    assert [request.method for request in script.requests] == ["POST", "GET", "GET"]


def test_work_ends_at_the_step_whose_task_is_cancelled() -> None:
    ended: list[str] = []

    def work() -> Steps[str, None]:
        try:
            yield "first"
        except BaseException as error:
            ended.append(type(error).__name__)
            raise
        ended.append("went on")

    async def cancelled() -> None:
        async def forever(_step: str) -> None:
            await asyncio.Event().wait()

        task = asyncio.create_task(awaited(work(), forever))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert ended == ["GeneratorExit"]


@pytest.mark.parametrize(("plain", "face"), [(Items, AsyncItems), (Client, AsyncClient)])
def test_both_faces_have_the_same_names_and_arguments(plain: type, face: type) -> None:
    names = {name for name in vars(plain) if not name.startswith("_")}

    assert {name for name in vars(face) if not name.startswith("_")} == names
    for name in names:
        ours, theirs = (arguments_of(getattr(each, name)) for each in (plain, face))
        if (plain, name) == (Client, "rest"):
            # The pool of the blocking client has no bound, and the other's tokens may be awaited.
            del theirs["connections"], theirs["token"], ours["token"]
        assert theirs == ours


def arguments_of(method: Callable[..., Any]) -> dict[str, str]:
    return {name: str(each) for name, each in inspect.signature(method).parameters.items()}


@pytest.mark.parametrize("module", WITHOUT_IO)
def test_what_decides_imports_nothing_that_sends_or_waits(module: str) -> None:
    tree = ast.parse((ROOT / f"{module}.py").read_text("utf-8"))
    found = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip

    assert found.isdisjoint(SENDS)


def test_the_error_of_a_program_without_httpx_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dynashard_client.awaiting.rest", raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)

    with pytest.raises(ConfigurationError, match=r"dynashard-client\[async\]"):
        AsyncClient.rest("https://api", token="t")  # noqa: S106


def test_the_package_loads_neither_httpx_nor_its_driver_before_they_are_needed() -> None:
    late = {"httpx", "dynashard_client.awaiting.rest"}
    code = f"import sys, dynashard_client; sys.exit(bool({late} & sys.modules.keys()))"

    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
