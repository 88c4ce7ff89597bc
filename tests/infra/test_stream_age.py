"""The watch measures how long changes wait for a consumer that does not run: on the engine's stream, in its role."""

import json
import logging
import time

import pytest

from dynashard_serving.reshard.handler import measure_stream
from dynashard_serving.reshard.stream_age import KEPT_SECONDS, RECENT_SECONDS
from tests.infra.cloudwatch_metrics import CloudWatch
from tests.infra.reshard_aws import Mappings
from tests.infra.reshard_world import Parcel, World

pytestmark = pytest.mark.infra

CONSUMER = "FollowFunction"
HOUR = 3600.0
NEVER = 2 * KEPT_SECONDS


def measured(
    parcels: World,
    *,
    ran: float | None,
    wrote: float | None = 0.0,
    now: float = HOUR,
    mappings: Mappings | None = None,
    metric: str = "ConsumedWriteCapacityUnits",
    closed: bool = False,
) -> float:
    """Return the age that the watch measures.

    The items of the world were written just now on the engine's clock. `ran` and `wrote` are seconds before that, at
    which CloudWatch counted a run and a write; `now` is seconds after it. None for never.
    """
    written = time.time()
    parcels.clock.now = written + now
    cloud = CloudWatch(now=written + now)
    if ran is not None:
        cloud.write("AWS/Lambda", "Invocations", [CONSUMER], written - ran, 1)
    if wrote is not None:
        cloud.write("AWS/DynamoDB", metric, ["Table"], written - wrote, 5)
    mappings = mappings or Mappings({CONSUMER: "Enabled"})
    return parcels.stream_age(mappings, cloud, closed=closed).seconds()


def test_changes_that_nobody_was_invoked_for_have_the_age_of_the_oldest(parcels: World) -> None:
    age = measured(parcels, ran=HOUR, mappings=Mappings({CONSUMER: "Disabled"}))

    assert HOUR <= age <= HOUR + 60
    waiting = f"changes wait for {age:.0f} s in the stream: consumer {CONSUMER} has not run since, and "
    assert parcels.log == [f"{waiting}its event source mapping is Disabled"]


def test_nothing_waits_if_the_consumer_ran_after_the_last_write(parcels: World) -> None:
    assert [measured(parcels, ran=-120, now=now) for now in (RECENT_SECONDS + 300, 20 * HOUR)] == [0, 0]
    assert parcels.log == []


def test_a_consumer_that_ran_a_few_minutes_ago_is_alive_however_far_it_is_behind(parcels: World) -> None:
    assert measured(parcels, ran=RECENT_SECONDS - 300, now=240) == 0


def test_consumed_units_without_a_change_are_no_change(parcels: World) -> None:
    # A refused condition consumes a unit, and leaves no record.
    for closed in (False, True):
        assert measured(parcels, ran=-120, wrote=-HOUR / 2, closed=closed) == 0


def test_changes_in_a_closed_shard_wait_too(parcels: World) -> None:
    assert measured(parcels, ran=HOUR, closed=True) >= HOUR


def test_deletions_by_ttl_wait_too(parcels: World) -> None:
    assert measured(parcels, ran=HOUR, metric="TimeToLiveDeletedItemCount") >= HOUR


def test_without_a_mapping_and_without_a_run_everything_waits(parcels: World) -> None:
    for mappings in (Mappings(), Mappings({CONSUMER: "Enabled"})):
        assert measured(parcels, ran=None, mappings=mappings) >= HOUR


def test_the_consumer_that_is_furthest_behind_counts(parcels: World) -> None:
    states = {"first": "Enabled", CONSUMER: "Enabled", "filtered": "Enabled", "fourth": "Disabled"}
    mappings = Mappings(states, {"filtered"})

    assert measured(parcels, ran=-120, mappings=mappings) >= HOUR
    assert [line.split("consumer ")[1].split()[0] for line in parcels.log] == ["first", "fourth"]


def test_a_consumer_that_does_not_get_every_change_is_not_judged(parcels: World) -> None:
    mappings = Mappings({CONSUMER: "Enabled", "filtered": "Enabled"}, {"filtered"})

    assert measured(parcels, ran=-120, mappings=mappings) == 0


def test_reading_ends_after_a_bound_and_the_changes_then_count_as_waiting(
    parcels: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynashard_serving.reshard.stream_age.MOST_READS", 1)

    # Nothing in the first read is after the run.
    assert measured(parcels, ran=-120, wrote=-HOUR / 2) == pytest.approx(HOUR - 120, abs=120)


def test_the_age_is_a_metric(parcels: World, capsys: pytest.CaptureFixture[str]) -> None:
    parcels.parcels().create(Parcel(tenant="abc", id="new"))
    parcels.clock.now = time.time()

    measure_stream(parcels.stream_age(Mappings({CONSUMER: "Enabled"}), CloudWatch(now=parcels.clock.now)), "dev")

    assert json.loads(capsys.readouterr().out)["StreamAgeSeconds"] == [0]


def test_without_an_answer_the_metric_is_missing_and_the_error_is_logged(
    parcels: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    age = parcels.stream_age(Mappings(), CloudWatch(now=parcels.clock.now))
    parcels.wire.roles["Watch"] = parcels.wire.roles["Watch"].without(("*", "lambda:ListEventSourceMappings"))
    denied = parcels.stream_age(Mappings(), CloudWatch(now=parcels.clock.now))

    measure_stream(denied, "dev")

    assert capsys.readouterr().out == ""
    assert "the age of the stream cannot be measured" in caplog.text
    assert age.seconds() == 0
