"""What it means for each alarm that its metric has no data, and why. No alarm may be missing here."""

import pytest

from tests.infra.templates import Templates, alarms_in

pytestmark = pytest.mark.infra

EVENTS = "DynamoDB writes a count of throttles only if it is not 0; FILL makes the missing ones 0"
REQUESTS = "API Gateway writes metrics only in minutes with requests; `no-traffic` is about none"
RUNS = "Lambda writes metrics only if the function is asked to run"
QUEUE = "SQS writes metrics of a queue while it has messages or is used, and for six hours after"
EXECUTIONS = "Step Functions writes metrics only if an execution ends"
OWN = "our functions write the metric only if there is such a request, batch or event"
BY_THE_WATCH = "the watch writes the metric; `watch-missed-silent` is about its silence"

CALM, FAULT, UNKNOWN = "notBreaching", "breaching", "ignore"

SILENCE = {
    "account-limit": (CALM, EVENTS),
    "capacity-step-missed": (CALM, "EventBridge Scheduler writes dropped invocations only if there are any"),
    "changes-dead-letters": (CALM, QUEUE),
    "dead-letters": (CALM, QUEUE),
    "function-failing": (CALM, RUNS),
    "function-throttled": (CALM, RUNS),
    "growth-failed": (CALM, OWN),
    "growth-frequent": (CALM, OWN),
    "growth-limit": (CALM, OWN),
    "growth-refused": (CALM, OWN),
    "latency": (CALM, REQUESTS),
    "no-traffic": (
        FAULT,
        "an operator has set how long it may be quiet; FILL makes a missing count 0, which rings too",
    ),
    "operations-failed": (CALM, OWN),
    "outcome-unknown": (CALM, OWN),
    "prewarm-failed": (CALM, EXECUTIONS),
    "prewarm-not-returned": (CALM, "an on-demand table has no provisioned capacity"),
    "queue-age": (CALM, QUEUE),
    "queue-age-stored": (CALM, OWN),
    "reshard-failed": (CALM, EXECUTIONS),
    "reshard-idle": (CALM, BY_THE_WATCH),
    "reshard-not-started": (CALM, QUEUE),
    "reshard-old": (UNKNOWN, BY_THE_WATCH),
    "reshard-paused": (UNKNOWN, BY_THE_WATCH),
    "rollup-lag": (CALM, OWN),
    "server-errors": (CALM, REQUESTS),
    "shed": (CALM, OWN),
    "small-table-throttled": (CALM, EVENTS),
    "stream-age": (
        CALM,
        "Lambda writes IteratorAge only in runs of the consumer; `stream-age-unread` is about none",
    ),
    "stream-age-unread": (FAULT, "the watch measures it every 15 minutes: without it nobody knows"),
    "table-ceiling": (CALM, EVENTS),
    "throttled-key": (CALM, EVENTS),
    "undecodable-items": (CALM, OWN),
    "unauthorized": (CALM, REQUESTS),
    "watch-missed": (CALM, QUEUE),
    "watch-missed-silent": (
        FAULT,
        "the watch writes it every 15 minutes; FILL makes a missing count 0, which rings too",
    ),
    "writer-throttled": (CALM, OWN),
}
"""By the name of the alarm, or what it begins with: `TreatMissingData`, and the reason."""


def entry_of(name: str) -> str | None:
    """The longest entry that an alarm's name begins with."""
    return max((each for each in SILENCE if name == each or name.startswith(f"{each}-")), key=len, default=None)


@pytest.fixture(scope="module")
def treated(dev: Templates, prod: Templates, watched: Templates) -> dict[str, str]:
    """What all alarms do with missing data."""
    stacks = [dev["Monitoring"], prod["Monitoring"], prod["Prewarm"], watched["Monitoring"]]
    return {name: alarm["TreatMissingData"] for stack in stacks for name, alarm in alarms_in(stack).items()}


def test_every_alarm_treats_silence_as_what_it_means(treated: dict[str, str]) -> None:
    wanted = {name: SILENCE[entry][0] for name in treated if (entry := entry_of(name)) is not None}

    assert treated == wanted
    assert {entry_of(name) for name in treated} == set(SILENCE)
