"""Outages ring their alarms, an ordinary night rings none, and what has ended can ring again.

The alarms are the synthesised ones. CloudWatch's rules are in `cloudwatch_alarms.py`, the metrics in
`recorded_night.py`.
"""

from collections.abc import Callable, Mapping
from itertools import product

import pytest

from tests.infra.cloudwatch_alarms import Alarm, Change, computed, judged, rung, watch
from tests.infra.cloudwatch_metrics import CloudWatch
from tests.infra.recorded_night import FUNCTIONS, HOUR, START, Night
from tests.infra.templates import Templates, alarms_in

pytestmark = pytest.mark.infra

Alarms = Mapping[str, Alarm]
BEFORE = START + HOUR
"""When an outage begins, after an ordinary hour."""
MINUTES = 60.0


@pytest.fixture(scope="module")
def alarms(dev: Templates) -> Alarms:
    """The alarms of an ordinary environment."""
    return {name: Alarm(alarm) for name, alarm in alarms_in(dev["Monitoring"]).items()}


@pytest.fixture(scope="module")
def quiet(watched: Templates) -> Alarms:
    """The alarms of an environment that rings for half an hour without a request."""
    return {name: Alarm(alarm) for name, alarm in alarms_in(watched["Monitoring"]).items()}


def after(outage: Callable[[Night, float, float], None], alarms: Alarms, *, hours: float = 1.5) -> list[Change]:
    """What alarms do from an ordinary hour to the end of an outage that follows it."""
    night, end = Night(), BEFORE + hours * HOUR
    night.ordinary(START, BEFORE)
    outage(night, BEFORE, end)
    return watch(alarms, night.cloud, BEFORE, end)


def watch_off(night: Night, start: float, end: float) -> None:
    night.traffic(start, end)
    night.consumer(start, end)
    night.queues(start, end)


def consumer_off(state: str | None) -> Callable[[Night, float, float], None]:
    """The event source mapping is disabled, or gone: changes are written and nobody is invoked."""

    def outage(night: Night, start: float, end: float) -> None:
        night.traffic(start, end, requests=2)
        night.mappings.states = {} if state is None else {FUNCTIONS["changes"]: state}
        night.watch(start, end)
        night.queues(start, end)

    return outage


def unauthorized(night: Night, start: float, end: float) -> None:
    """The issuer's keys were replaced: the gateway refuses everybody but the health check."""
    at = start
    while at < end:
        night.gateway(at, 200)
        for _ in range(20):
            night.gateway(at, 401)
        at += 60
    night.watch(start, end)
    night.queues(start, end)


def no_traffic(night: Night, start: float, end: float) -> None:
    night.watch(start, end)
    night.queues(start, end)


def refusing(function: str) -> Callable[[Night, float, float], None]:
    """Lambda refuses every run of a function; what asked for it asks again, less and less often."""

    def outage(night: Night, start: float, end: float) -> None:
        if function == "api":
            at = start
            while at < end:
                night.gateway(at, 503)
                night.refused("api", at)
                at += 20
        else:
            night.traffic(start, end)
            at, pause = start, 1.0
            while at < end:
                night.refused(function, at)
                at, pause = at + pause, min(300.0, 2 * pause)
        if function != "changes":
            night.consumer(start, end)
        if function != "watch":
            night.watch(start, end)
        night.queues(start, end)

    return outage


def throttling(event: str, *of: str) -> Callable[[Night, float, float], None]:
    """DynamoDB throttles a table or an index, for 20 minutes."""

    def outage(night: Night, start: float, end: float) -> None:
        night.ordinary(start, end)
        night.throttled(start, start + 20 * MINUTES, event, *of)

    return outage


def failing(night: Night, start: float, end: float) -> None:
    """One request of thirty is answered with 5xx, at night, when five in five minutes are not reached."""
    night.ordinary(start, end)
    at = start
    while at < end:
        night.request(at, 500)
        at += 240


def given_up(night: Night, start: float, end: float) -> None:
    """One accepted write cannot be done, because the stored item cannot be read."""
    night.ordinary(start, end)
    night.gave_up(start + 600)


def slow(night: Night, start: float, end: float) -> None:
    """All requests are slow, in an environment with too few for a hundredth."""
    night.traffic(start, end, requests=2, ms=8000.0)
    night.consumer(start, end)
    night.watch(start, end)
    night.queues(start, end)


OUTAGES: Mapping[str, tuple[Callable[[Night, float, float], None], set[str]]] = {
    "consumer disabled": (consumer_off("Disabled"), {"stream-age-unread"}),
    "consumer gone": (consumer_off(None), {"stream-age-unread"}),
    "consumer enabled and not invoked": (consumer_off("Enabled"), {"stream-age-unread"}),
    "watch rule off": (watch_off, {"watch-missed-silent"}),
    "401 for everybody": (unauthorized, {"unauthorized"}),
    **{f"throttled {each}": (refusing(each), {f"function-throttled-{each}"}) for each in FUNCTIONS},
    **{
        f"throttled {table} {way}s": (
            throttling(f"{way}ThrottleEvents", table),
            {f"small-table-throttled-{table.lower()}-{way.lower()}s"},
        )
        for table, way in product(("Idempotency", "Topology"), ("Read", "Write"))
    },
    "index at the account's limit": (
        throttling("WriteAccountLimitThrottleEvents", "Table", "GSI2"),
        {"account-limit-gsi2-writes"},
    ),
    "5xx for one of thirty": (failing, {"server-errors-rate"}),
    "an accepted write is given up": (given_up, {"operations-failed"}),
    "slow, and few requests": (slow, {"latency-median"}),
}
MORE = {
    "throttled api": {"server-errors", "server-errors-rate"},
    "throttled changes": {"stream-age-unread"},
    "throttled watch": {"watch-missed-silent", "stream-age-unread"},
    "watch rule off": {"stream-age-unread"},
}
"""What rings besides, because it is the same outage."""


@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_rings_its_alarm_and_no_other(outage: str, alarms: Alarms) -> None:
    happening, wanted = OUTAGES[outage]

    assert rung(after(happening, alarms)) == wanted | MORE.get(outage, set())


def test_no_traffic_rings_only_where_a_setting_says_that_it_is_a_fault(alarms: Alarms, quiet: Alarms) -> None:
    assert rung(after(no_traffic, alarms)) == set()
    (ring,) = after(no_traffic, quiet)

    assert ring.name == "no-traffic"
    assert 30 * MINUTES <= ring.at - BEFORE <= 40 * MINUTES


def test_when_the_accounts_concurrency_is_used_up_every_function_rings(alarms: Alarms) -> None:
    def outage(night: Night, start: float, end: float) -> None:
        at = start
        while at < end:
            for function in FUNCTIONS:
                night.refused(function, at)
            at += 120

    rang = rung(after(outage, alarms))

    assert {f"function-throttled-{each}" for each in FUNCTIONS} <= rang


def test_an_ordinary_quiet_night_rings_nothing(alarms: Alarms, quiet: Alarms) -> None:
    night, end = Night(), START + 8 * HOUR
    night.ordinary(START, end, requests=2)
    # An expired token, a scanner, a server error, slow listings, a burst of throttles, and a refused run.
    for n in range(4):
        night.gateway(START + HOUR + 30 * n, 401)
    for n in range(60):
        night.gateway(START + 2 * HOUR + n, 401)
    night.request(START + 3 * HOUR, 500)
    for n in range(6):
        night.request(START + 4 * HOUR + 300 * n, 200, 9000.0)
    night.throttled(START + 5 * HOUR, START + 5 * HOUR + 180, "WriteKeyRangeThroughputThrottleEvents", "Table")
    night.throttled(START + 6 * HOUR, START + 6 * HOUR + 60, "WriteThrottleEvents", "Idempotency")
    night.refused("changes", START + 7 * HOUR, 30)
    # A nightly job that creates what is there already: it consumes units, and changes nothing.
    night.traffic(end, end + HOUR, requests=4, status=409)
    night.watch(end, end + HOUR)
    night.queues(end, end + HOUR)

    for each in (alarms, quiet):
        # These steps see every phase of a period.
        assert watch(each, night.cloud, START + HOUR, end + HOUR, every=7 * MINUTES) == []


def test_a_consumer_that_stops_rings_within_half_an_hour(alarms: Alarms) -> None:
    (ring,) = after(consumer_off("Disabled"), alarms)

    assert ring.at - BEFORE <= 35 * MINUTES


def test_a_watch_that_stops_rings_about_an_hour_later(alarms: Alarms) -> None:
    (ring,) = [change for change in after(watch_off, alarms) if change.name == "watch-missed-silent"]

    assert ring.at - BEFORE <= 65 * MINUTES


def test_an_alarm_on_throttles_ends_and_rings_again(alarms: Alarms) -> None:
    night = Night()
    night.ordinary(START, START + 3 * HOUR, requests=2)
    for begins in (START + HOUR, START + 2 * HOUR):
        night.throttled(begins, begins + 600, "WriteThrottleEvents", "Topology")

    changes = watch(alarms, night.cloud, START + HOUR / 2, START + 3 * HOUR)

    assert [change.state for change in changes] == ["ALARM", "OK", "ALARM", "OK"]
    assert {change.name for change in changes} == {"small-table-throttled-topology-writes"}


def test_an_alarm_on_a_metric_of_dynamodb_itself_would_never_end(alarms: Alarms) -> None:
    expression = alarms["small-table-throttled-topology-writes"]
    (events,) = expression.metrics.values()
    described = next(each["MetricStat"] for each in expression.properties["Metrics"] if "MetricStat" in each)
    bare = {
        name: value for name, value in expression.properties.items() if name not in ("Metrics", "DatapointsToAlarm")
    }
    stood = Alarm({**bare, **described["Metric"], "Period": 60, "Statistic": "Sum", "EvaluationPeriods": 5})
    assert list(stood.metrics.values()) == [events]
    night = Night()
    night.throttled(START + HOUR, START + HOUR + 600, "WriteThrottleEvents", "Topology")

    (only,) = watch({"stood": stood}, night.cloud, START, START + 12 * HOUR)

    assert only.state == "ALARM"


def test_a_paused_change_stays_paused_while_the_watch_does_not_run(alarms: Alarms) -> None:
    paused = {"reshard-paused": alarms["reshard-paused"]}
    cloud = CloudWatch()
    for n in range(4):
        cloud.write("Dynashard", "ReshardsPaused", ["dev"], START + 900 * n, 1)

    changes = watch(paused, cloud, START, START + 6 * HOUR)

    assert [change.state for change in changes] == ["ALARM"]


GUIDE = [
    # Points (X breaches, 0 does not), M, N; the states for breaching, notBreaching, and ignore after ALARM.
    ("0-X-X", 3, 3, "OK", "OK", "OK"),
    ("----0", 3, 3, "OK", "OK", "OK"),
    ("-----", 3, 3, "ALARM", "OK", "ALARM"),
    ("0XX-X", 3, 3, "ALARM", "ALARM", "ALARM"),
    ("--X--", 3, 3, "ALARM", "OK", "ALARM"),
    ("0-X-X", 2, 3, "ALARM", "ALARM", "ALARM"),
    ("00X0X", 2, 3, "ALARM", "ALARM", "ALARM"),
    ("0-X--", 2, 3, "ALARM", "OK", "OK"),
    ("----0", 2, 3, "ALARM", "OK", "OK"),
    ("---X-", 2, 3, "ALARM", "OK", "ALARM"),
]
"""The examples of CloudWatch's user guide, "How alarm state is evaluated when data is missing"."""


@pytest.mark.parametrize("case", GUIDE, ids=lambda case: f"{case[1]} of {case[2]}: {case[0]}")
def test_missing_data_are_judged_as_in_the_guide(case: tuple[str, int, int, str, str, str]) -> None:
    points, needed, periods, *wanted = case
    breaching = [{"X": True, "0": False}.get(point) for point in points]

    found = [judged(breaching, periods, needed, each, "ALARM") for each in ("breaching", "notBreaching", "ignore")]

    assert found == wanted


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("FILL(a, 0)", [1.0, 0.0, 3.0]),
        ("IF(FILL(a, 0) > 0, 0, 1)", [0.0, 1.0, 0.0]),
        ("a / b", [0.5, None, None]),
        ("DIFF(a)", [None, None, 2.0]),
        ("IF(FILL(a, 0) > 0 AND DIFF(a) == 2, 1, 0)", [None, None, 1.0]),
    ],
)
def test_expressions_are_computed_for_each_period(expression: str, wanted: list[float | None]) -> None:
    assert computed(expression, {"a": [1.0, None, 3.0], "b": [2.0, 2.0, None]}) == wanted
