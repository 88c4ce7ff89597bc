"""One API in many threads: requests do not see each other."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from dynashard.runtime import Runtime
from dynashard.transport import Transport
from tests.api_caller import Answer, a_user
from tests.engine.api.api_on_engine import caller_on

pytestmark = pytest.mark.engine


class Interrupting:
    """A clock that runs an action in another thread when it is first read."""

    action: Callable[[], None] | None = None

    def __call__(self) -> float:
        action, self.action = self.action, None
        if action is not None:
            other = Thread(target=action)
            other.start()
            other.join()
        return 1_780_000_000.0


def test_an_overtaken_request_keeps_its_own_event(transport: Transport, table: str) -> None:
    clock = Interrupting()
    mine = caller_on(transport, table, runtime=Runtime(clock))
    theirs = mine.of("xyz")
    mine.put("/v1/users/mine", a_user(display_name="Mine"))
    theirs.put("/v1/users/theirs", a_user(display_name="Theirs"))
    overtaking: list[Answer] = []
    clock.action = lambda: overtaking.append(theirs.get("/v1/users/theirs"))

    overtaken = mine.get("/v1/users/mine")

    assert [answer.json["display_name"] for answer in overtaking] == ["Theirs"]
    assert (overtaken.json["tenant_id"], overtaken.json["display_name"]) == ("abc", "Mine")


def test_tenants_in_many_threads_see_their_own_items(transport: Transport, table: str) -> None:
    caller = caller_on(transport, table)
    tenants = [f"tenant-{number}" for number in range(8)]

    def work(tenant: str) -> list[tuple[int, str, str]]:
        own = caller.of(tenant)
        seen = []
        for number in range(10):
            own.put(f"/v1/users/{number}", a_user(display_name=f"{tenant}-{number}"))
            answer = own.get(f"/v1/users/{number}", query="consistent=true")
            seen.append((answer.status, answer.json["tenant_id"], answer.json["display_name"]))
        return seen

    with ThreadPoolExecutor(len(tenants)) as pool:
        results = list(pool.map(work, tenants))

    assert results == [[(200, tenant, f"{tenant}-{number}") for number in range(10)] for tenant in tenants]
