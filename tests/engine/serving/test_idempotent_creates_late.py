"""Creates with an idempotency key that are executed or answered after the end of the view they were sent under."""

from collections.abc import Iterator

import pytest

from dynashard.errors import DynashardError, OutcomeUnknownError
from dynashard.repository import late
from dynashard.testing.faults import Fault
from dynashard.transport import Transport
from dynashard_serving.documents import Document
from dynashard_serving.idempotency import Attempt, IdempotentCreates
from tests.engine.repository.late_world import HOW, client, judged, moving_ids, outcome, reach, things
from tests.engine.resharding.resharding_world import ABC, STAGES, Moving, Thing, moving_world
from tests.engine.serving.idempotent_scene import TRANSACT, Ended, ended_after

pytestmark = pytest.mark.engine


@pytest.fixture
def moving(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table, segments=1) as made:
        yield made


def thing(moving: Moving, records: str, identity: str, plan: list[Fault]) -> tuple[Document, bool]:
    body = {"tenant": "abc", "id": identity}
    creates = IdempotentCreates(records, moving.inner, clock=moving.clock)
    return creates.run(Attempt("abc", identity, body, Thing(**body)), things(client(moving, plan)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("how", "begins", "to"),
    [
        *((how, "", 8) for how in (*HOW, "ended")),
        ("ended", "prepare", 8),
        ("answered late", "prepare", 8),
        ("executed late", "move", 8),
        ("ended", "settle", 8),
        ("ended", "prepare", 2),
        ("executed late", "settle", 2),
    ],
)
def test_an_answered_item_is_found_however_late_it_was_stored(
    moving: Moving, records: str, how: str, begins: str, to: int
) -> None:
    stages = STAGES[STAGES.index(begins or "prepare") + 1 :]
    for identity, stage in zip(moving_ids(4, to, len(stages)), stages, strict=True):
        if begins:
            moving.resharder.start(ABC, to, survey=False)
            moving.until(ABC, begins)

        def happens(stage: str = stage) -> None:
            if not begins:
                moving.resharder.start(ABC, to, survey=False)
            reach(moving, stage)

        plan = [ended_after(happens) if how == "ended" else HOW[how](TRANSACT, happens)]
        try:
            first = outcome(lambda: thing(moving, records, identity, plan))  # noqa: B023 - called at once
        except Ended:
            first = None
        again = outcome(lambda: thing(moving, records, identity, []))  # noqa: B023 - called at once

        acknowledged = not (isinstance(first, DynashardError) and isinstance(again, DynashardError))
        assert acknowledged, (stage, first, again)
        judged(moving, identity, acknowledged=True)
        moving.finish(ABC)
        judged(moving, identity, acknowledged=True)
        assert thing(moving, records, identity, []) == (again[0], True)
        moving.resize(ABC, 4)
        judged(moving, identity, acknowledged=True)


def test_an_item_that_cannot_be_moved_home_is_not_answered_as_done(
    moving: Moving, records: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another item took its home before the late create was stored at the old one."""
    [identity] = moving_ids(4, 8, 1)
    moving.resharder.start(ABC, 8, survey=False)
    moving.until(ABC, "prepare")

    def taken() -> None:
        reach(moving, "stable")
        things(client(moving)).create(Thing(tenant="abc", id=identity, text="theirs"))

    with pytest.raises(Ended):
        thing(moving, records, identity, [ended_after(taken)])

    with pytest.raises(OutcomeUnknownError) as unknown:
        thing(moving, records, identity, [])
    assert unknown.value.retryable

    monkeypatch.setattr(late, "_TRIES", 0)
    with pytest.raises(OutcomeUnknownError):
        thing(moving, records, identity, [])
