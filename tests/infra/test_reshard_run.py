"""Resizes from the resize request to the end: synthesised machine and filters, real steps, real engine."""

from itertools import count, pairwise
from typing import Any

import pytest

from dynashard_serving.reshard.watch import Seen
from tests.infra.prewarm_world import definition_in
from tests.infra.reshard_world import ASKED, IDS, WAIT, Fault, Parcel, World, fill, world
from tests.infra.templates import Templates, of_type

pytestmark = pytest.mark.infra


def stored(made: World) -> list[str]:
    return sorted(item.id for item in made.parcels().scan({"tenant": "abc"}, consistent=True))


def shards_used(made: World) -> set[str]:
    return {name.rpartition(":")[2] for name in made.shards()}


def test_a_resize_request_is_enough_to_grow(parcels: World) -> None:
    asked = parcels.start(8)
    parcels.deliver()
    (execution,) = parcels.run()

    assert (asked["stage"], asked["count"], asked["target"]) == ("pending", 2, 8)
    assert execution.status == "SUCCEEDED"
    status = parcels.status()
    assert (status["stage"], status["count"], status["target"], status["swept"]) == ("stable", 8, None, True)
    assert stored(parcels) == IDS
    assert "marks" not in parcels.shards()
    assert shards_used(parcels) - {"0", "1"}


def test_shrinking_moves_everything_into_fewer_shards(parcels: World) -> None:
    for to in (16, 1):
        parcels.start(to)
        parcels.deliver()
        assert [execution.status for execution in parcels.run()] == ["SUCCEEDED"]

    assert parcels.shards() == {"parcel.v1.Parcel:abc:0": len(IDS)}
    assert stored(parcels) == IDS


def test_no_more_tasks_are_worked_on_at_once_than_share_the_budget(parcels: World) -> None:
    for to in (16, 1):
        parcels.start(to)
        parcels.deliver()
        (execution,) = parcels.run()

    rounds = " ".join(execution.path).split("Work")[1:]
    # Before it begins, shard 0 is looked at, to which all items come. It keeps all it has: 15 tasks, counted, moved,
    # passed over again and swept.
    assert [each.count("Slice") for each in rounds] == [1, *[parcels.settings.concurrency, 7] * 4]


def test_no_phase_is_published_before_its_time(parcels: World) -> None:
    seen: list[tuple[str, float]] = []

    def look(_entry: str) -> None:
        stage = parcels.status()["stage"]
        if not seen or seen[-1][0] != stage:
            seen.append((stage, parcels.clock.now))

    parcels.meanwhile = look
    parcels.start(4)
    parcels.deliver()
    parcels.run()

    stages = [stage for stage, _ in seen]
    assert stages == ["pending", "prepare", "move", "settle", "sweep"]
    assert min(later - earlier for (_, earlier), (_, later) in pairwise(seen)) >= WAIT


def test_clients_write_and_read_while_it_runs(parcels: World) -> None:
    collection, created, numbers = parcels.parcels(), list(IDS), count(100)

    def client(_entry: str) -> None:
        name = str(next(numbers))
        collection.create(Parcel(tenant="abc", id=name))
        created.append(name)
        assert sorted(item.id for item in collection.scan({"tenant": "abc"}, consistent=True)) == sorted(created)

    parcels.meanwhile = client
    parcels.start(8)
    parcels.deliver()
    parcels.run()

    assert len(created) > len(IDS) + 8
    assert stored(parcels) == sorted(created)
    assert parcels.status()["count"] == 8


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", ["Advance", "Work"])
@pytest.mark.parametrize("after", [0, 1, 3, None])
def test_a_function_that_dies_in_each_call_is_called_again(parcels: World, entry: str, after: int | None) -> None:
    """Every other call is killed before its first request, after some, or after all, when only its answer is lost."""
    parcels.faults = [Fault(entry, nth, after) for nth in range(1, 100, 2)]
    parcels.start(4)
    parcels.deliver()
    executions = parcels.run()

    assert [execution.status for execution in executions] == ["SUCCEEDED"]
    assert (parcels.status()["count"], parcels.status()["swept"]) == (4, True)
    assert stored(parcels) == IDS
    assert "marks" not in parcels.shards()


@pytest.mark.parametrize("entry", ["Advance", "Work"])
def test_a_permanent_failure_pauses_the_resize_until_it_is_resumed(parcels: World, entry: str) -> None:
    parcels.faults = [Fault(entry, None, 0)]
    parcels.start(4)
    parcels.deliver()
    (failed,) = parcels.run()
    stands = parcels.status()
    parcels.faults = []
    nothing = parcels.deliver()
    assert parcels.operate("reshard.resume", **ASKED)["ok"]
    parcels.deliver()
    (resumed,) = parcels.run()

    assert (failed.status, failed.error, failed.path[-2:]) == ("FAILED", "ReshardFailed", ["Stop", "Failed"])
    assert (stands["paused"], stands["error"]) == (True, "injected")
    assert nothing == []
    assert resumed.status == "SUCCEEDED"
    assert (parcels.status()["count"], parcels.status()["error"]) == (4, None)
    assert stored(parcels) == IDS


def test_a_failure_that_cannot_be_recorded_still_fails_the_execution(parcels: World) -> None:
    parcels.faults = [Fault("Advance", None, 0), Fault("Stop", None, 0)]
    parcels.start(4)
    parcels.deliver()
    (failed,) = parcels.run()

    assert (failed.status, failed.cause) == ("FAILED", "injected")
    assert parcels.status()["paused"] is False


def test_a_resize_without_an_execution_is_taken_up_by_the_watch(parcels: World) -> None:
    parcels.start(4)
    parcels.lose()
    parcels.clock.now += 200
    parcels.look()
    too_early = list(parcels.stepfunctions.started)
    parcels.clock.now += 200
    parcels.look()
    parcels.look()
    (execution,) = parcels.run()

    assert too_early == []
    assert execution.status == "SUCCEEDED"
    assert parcels.status()["count"] == 4


def test_the_watch_leaves_running_and_paused_resizes_alone_and_reports_their_age(parcels: World) -> None:
    nothing = parcels.look()
    parcels.start(4)
    parcels.deliver()
    parcels.clock.now += 7200
    running = parcels.look()
    started = list(parcels.stepfunctions.started)
    parcels.stepfunctions.ended |= set(started)
    parcels.operate("reshard.pause", **ASKED)
    paused = parcels.look()

    assert nothing == [Seen()]
    assert [(each.running, each.paused, each.hours) for each in (*running, *paused)] == [(1, 0, 2.0), (0, 1, 2.0)]
    assert list(parcels.stepfunctions.started) == started
    assert len(started) == 1


def test_a_pause_ends_the_execution_and_a_resumption_starts_another(parcels: World) -> None:
    def pause(entry: str) -> None:
        if entry == "Work" and parcels.calls.count("Work") == 1:
            parcels.operate("reshard.pause", **ASKED)

    parcels.meanwhile = pause
    parcels.start(4)
    parcels.deliver()
    (first,) = parcels.run()
    stands = parcels.status()
    parcels.operate("reshard.resume", **ASKED)
    parcels.deliver()
    (second,) = parcels.run()

    assert (first.status, first.path[-1], stands["paused"]) == ("SUCCEEDED", "Done", True)
    assert second.status == "SUCCEEDED"
    assert parcels.status()["count"] == 4
    assert stored(parcels) == IDS


@pytest.mark.parametrize(("stage", "resizes"), [("pending", 1), ("prepare", 1), ("move", 2), ("settle", 2)])
def test_an_abort_ends_with_the_old_count_and_every_item(parcels: World, stage: str, resizes: int) -> None:
    def abort(_entry: str) -> None:
        status = parcels.status()
        if status["stage"] == stage and status["target"] == 4 and status["back_to"] is None:
            assert parcels.operate("reshard.abort", **ASKED)["ok"]

    parcels.meanwhile = abort
    parcels.start(4)
    parcels.deliver()
    executions = parcels.run()

    status = parcels.status()
    assert [execution.status for execution in executions] == ["SUCCEEDED"]
    assert (status["count"], status["target"], status["swept"]) == (2, None, True)
    assert (status["cause"] == "abort") == (resizes == 2)
    assert stored(parcels) == IDS
    assert "marks" not in parcels.shards()
    assert parcels.operate("reshard.status")["result"] == []


def test_an_abort_of_a_paused_resize_is_carried_out(parcels: World) -> None:
    parcels.start(4)
    parcels.operate("reshard.pause", **ASKED)
    parcels.deliver()
    parcels.operate("reshard.abort", **ASKED)
    parcels.deliver()
    executions = parcels.run()

    assert [execution.path[-1] for execution in executions] == ["Done", "Done"]
    assert (parcels.status()["count"], parcels.status()["target"]) == (2, None)
    assert parcels.look() == [Seen()]
    assert len(parcels.stepfunctions.started) == 2


def test_an_execution_that_grows_long_is_followed_by_another(dev: Templates, endpoint: str) -> None:
    with world(dev, endpoint, events=60) as made:
        fill(made)
        made.start(4)
        made.deliver()
        executions = made.run()
        names = list(made.stepfunctions.started)

        assert len(executions) > 2
        assert {execution.path[-1] for execution in executions[:-1]} == {"Continued"}
        assert executions[-1].path[-1] == "Done"
        assert names[1:] == [f"{names[0]}-{part}" for part in range(1, len(names))]
        assert made.status()["count"] == 4
        assert stored(made) == IDS


def test_a_request_delivered_twice_or_in_pieces_starts_one_execution(parcels: World) -> None:
    parcels.stepfunctions.broken = 2
    parcels.start(4)
    parcels.start(4, partition={"tenant": "other"})
    first = parcels.deliver()
    parcels._next.clear()
    second = parcels.deliver()

    assert [line.split(":")[0] for line in first] == [
        "no execution could be started for parcel.v1.Parcel",
        "no execution could be started for parcel.v1.Parcel",
        "started",
        "started",
    ]
    assert [line.split(":")[0] for line in second] == ["already started", "already started"]
    assert len(parcels.stepfunctions.started) == 2


def test_all_partitions_and_single_ones_change_concurrently(parcels: World) -> None:
    parcels.start(4)
    answer = parcels.operate("reshard.start", entity="parcel.v1.Parcel", partition=None, to=8)
    parcels.parcels().create(Parcel(tenant="other", id="1"))
    parcels.deliver()
    parcels.run()

    shown = parcels.operate("topology.show", entity="parcels")["result"]
    assert answer["result"]["key"] == "parcel.v1.Parcel"
    assert [(each["key"], each["count"]) for each in shown] == [("parcel.v1.Parcel", 8)]
    assert parcels.status()["count"] == 4
    assert stored(parcels) == IDS
    assert len(list(parcels.parcels().scan({"tenant": "other"}, consistent=True))) == 1


def test_the_simulation_has_every_function_of_the_machine(dev: Templates) -> None:
    states: dict[str, dict[str, Any]] = definition_in(dev["Reshard"])["States"]
    slice_ = states["Work"]["ItemProcessor"]["States"]["Slice"]

    called = {state["Resource"] for state in [*states.values(), slice_] if state["Type"] == "Task"}

    arns = {f"<{name}>" for name in of_type(dev["Reshard"], "AWS::Lambda::Alias")}
    assert called - arns == {"arn:<AWS::Partition>:states:::states:startExecution"}
    assert len(called) == 4
