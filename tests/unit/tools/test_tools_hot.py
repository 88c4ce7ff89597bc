"""`dynashard hot`: from throttled keys to what they belong to, the cause, and the command."""

import re
import shlex
from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.stub import ANY, Stubber

from domain.samples.users import User
from dynashard import definition
from dynashard.resharding import Status
from dynashard.resharding.status import EpochStatus
from dynashard.routing import shard_keys
from dynashard_tools.failure import CommandError
from dynashard_tools.hot.advice import Hot, as_dict, grouped, judged, lines
from dynashard_tools.hot.places import place_of
from dynashard_tools.hot.simulated import simulated
from dynashard_tools.hot.throttles import CAUSES, SLOTS, WAYS, CloudWatch, ThrottledKey
from tests.domain_served import ENTITIES

pytestmark = pytest.mark.unit

NOW = 1_800_000_030.0
USERS = definition(User)
RULE = "DynamoDBContributorInsights-{}-table-1500000000000"


def client(service: str) -> Any:
    return botocore.session.get_session().create_client(
        service,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 -- never sent
    )


@pytest.fixture
def source() -> CloudWatch:
    return CloudWatch(client("dynamodb"), client("cloudwatch"), "table", lambda: NOW)


def users(*shards: int) -> Hot:
    """Throttles of some shards of a tenant, 100 each."""
    place = place_of("user.v1.User:abc:3", None, ENTITIES)
    assert place is not None
    return Hot(place, {f"user.v1.User:abc:{shard}": 100 for shard in shards or (3,)})


def status(**resizes: Any) -> Status:
    basic: dict[str, Any] = {
        "key": "user.v1.User:abc", "entity": "user.v1.User", "partition": "user.v1.User:abc", "index": None,
        "phase": "stable", "stage": "stable", "count": 16, "target": None, "swept": True,
    }  # fmt: skip
    return Status(**(basic | resizes))


def text(template: str) -> str:
    """A key text of a template, with a value for each of its fields."""
    return re.sub(r"\{[^{}]*\}", "v", template)


@pytest.mark.parametrize("model", [each.entity for each in ENTITIES], ids=lambda model: model.__name__)
def test_every_stored_partition_key_leads_back_to_its_family_and_partition(model: Any) -> None:
    found = definition(model)
    prefix, partition = (f"{found.prefix}{found.separator}" if found.prefix else ""), text(found.partition.text)

    for stored in shard_keys(found.rule, prefix + partition, found.separator, 4 if found.shards else 0):
        place = place_of(stored, None, ENTITIES)
        assert place is not None
        assert (place.definition.prefix, place.index, place.partition) == (found.prefix, None, partition)


def test_partition_keys_of_indexes_lead_back_to_the_index() -> None:
    for index in USERS.indexes.values():
        partition, shard = text(index.partition.text), ":2" if index.shards else ""
        place = place_of(f"{index.prefix}:{partition}{shard}", index.slot, ENTITIES)
        assert place is not None
        assert (place.index, place.partition, place.arguments) == (index, partition, f"users --index {index.name}")


def test_a_key_of_no_entity_leads_nowhere() -> None:
    assert place_of("robots:7", None, ENTITIES) is None


def test_throttles_are_counted_by_resource_way_and_cause(source: CloudWatch) -> None:
    wanted = [(slot, way, cause) for slot in SLOTS for way in WAYS for cause in CAUSES]
    hot = wanted.index(("GSI2", "Write", "KeyRangeThroughput"))
    results = [
        {"Id": f"m{number}", "Label": "", "Values": [7.0, 5.0] if number == hot else [], "StatusCode": "Complete"}
        for number in range(len(wanted))
    ]

    with Stubber(source.cloudwatch) as stub:
        stub.add_response("get_metric_data", {"MetricDataResults": results}, {
            "StartTime": ANY, "EndTime": ANY, "MetricDataQueries": ANY
        })  # fmt: skip
        [found] = source.counts(15)

    assert (found.slot, found.way, found.cause, found.events) == ("GSI2", "Write", "KeyRangeThroughput", 12)


def test_throttled_keys_come_from_the_rules_of_contributor_insights(source: CloudWatch) -> None:
    described = {
        "TableName": "table",
        "ContributorInsightsRuleList": [RULE.format(kind) for kind in ("PKT", "SKT", "PKC")],
        "ContributorInsightsStatus": "ENABLED",
    }
    reports = {"PKT": ["user.v1.User:abc:3"], "SKT": ["user.v1.User:abc:3", "ada"]}

    with Stubber(source.dynamodb) as dynamodb, Stubber(source.cloudwatch) as cloudwatch:
        dynamodb.add_response("describe_contributor_insights", described, {"TableName": "table", "IndexName": "GSI1"})
        for kind, keys in reports.items():
            contributor = {"Keys": keys, "ApproximateAggregateValue": 41.0, "Datapoints": []}
            cloudwatch.add_response(
                "get_insight_rule_report",
                {"KeyLabels": ["PK"], "Contributors": [contributor]},
                {"RuleName": RULE.format(kind), "StartTime": ANY, "EndTime": ANY, "Period": 900,
                 "MaxContributorCount": 50, "OrderBy": "Sum"},
            )  # fmt: skip
        found = source.keys("GSI1", 15)

    assert found == [
        ThrottledKey("GSI1", "user.v1.User:abc:3", None, 41),
        ThrottledKey("GSI1", "user.v1.User:abc:3", "ada", 41),
    ]


def test_disabled_insights_and_refused_calls_are_explained(source: CloudWatch) -> None:
    with Stubber(source.dynamodb) as stub:
        stub.add_response("describe_contributor_insights", {"ContributorInsightsStatus": "DISABLED"})
        with pytest.raises(CommandError, match="contributor insights of table are DISABLED: deploy the data stack"):
            source.keys(None, 15)
        stub.add_response("describe_contributor_insights", {"ContributorInsightsStatus": "DISABLED"})
        # All keys, the default of the mode, would cost $0.03 for a million requests.
        with pytest.raises(CommandError, match=r"--table-name table --index-name GSI1 .*-mode THROTTLED_KEYS"):
            source.keys("GSI1", 15)
        stub.add_client_error("describe_contributor_insights", "AccessDeniedException", "no")
        with pytest.raises(CommandError, match=r"the throttled keys of GSI2 cannot be read: .*AccessDenied"):
            source.keys("GSI2", 15)


def test_keys_are_grouped_by_what_has_the_shard_count() -> None:
    keys = [
        ThrottledKey(None, "user.v1.User:abc:3", None, 10),
        ThrottledKey(None, "user.v1.User:abc:4", None, 20),
        ThrottledKey(None, "user.v1.User:xyz:0", None, 50),
        ThrottledKey(None, "user.v1.User:abc:4", "ada", 5),
        ThrottledKey(None, "robots:7", None, 99),
    ]

    first, second = grouped(keys, {(key.slot, key.partition): place_of(key.partition, None, ENTITIES) for key in keys})

    assert (first.place.partition, first.events) == ("xyz", 50)
    assert (second.place.partition, second.events, len(second.shards)) == ("abc", 30, 2)
    assert second.hottest == (("user.v1.User:abc:4", "ada"), 5 / 30)


SIXTEEN = range(16)


@pytest.mark.parametrize(
    ("hot", "state", "cause", "command"),
    [
        (users(*SIXTEEN), status(), "too few shards", "reshard start users abc --to 32"),
        (users(), status(), "a few shards take most", "reshard start users abc --to 32"),
        (users(), status(count=1024), "1024 shards, the most", None),
        (users(), status(target=32, stage="move"), "growing from 16 to 32", "reshard status users abc --watch"),
        (users(), status(target=32, paused=True, error="boom"), "paused: boom", "reshard resume users abc"),
        (users(), status(count=32, swept=False, stage="sweep"), "just changed to 32", "reshard status users abc"),
        (users(), status(target=8, stage="move"), "shrinking from 16 to 8", "reshard status users abc --watch"),
        (
            users(),
            status(target=8, stage="prepare", waits_for="empty_shards"),
            "the resize waits until the others are empty",
            "reshard abort users abc",
        ),
        (
            users(*SIXTEEN),
            status(target=16, stage="move"),
            "older entries are being brought to the places of its 16 shards",
            "reshard status users abc --watch",
        ),
        (users(), None, "declares no shards", None),
    ],
)
def test_the_cause_and_the_command_follow_from_the_state_of_the_count(
    hot: Hot, state: Status | None, cause: str, command: str | None
) -> None:
    verdict = judged(hot, state, most=1024)

    assert cause in verdict.cause
    assert (verdict.command or "").startswith(command or "")
    assert (verdict.command is None) == (command is None)


def test_a_single_hot_item_is_not_cured_by_shards() -> None:
    hot = users()
    hot.items["user.v1.User:abc:3", "ada"] = 83

    verdict = judged(hot, status(), most=1024)

    assert verdict.cause.startswith("83% of the throttles are of one item, user.v1.User:abc:3 ada")
    assert verdict.command is None


EPOCHS = (
    EpochStatus("", None, 1, "confirmed"),
    EpochStatus("2027-01-15T08:00:00.000000Z", NOW - 30, 16, "confirmed"),
)


def accesses(*times: str) -> Hot:
    """Throttles of accesses to a file at these times, 10 each."""
    stored = "audit.v1.OrderedAccess:abc:/a:0"
    place = place_of(stored, None, ENTITIES)
    assert place is not None
    return Hot(place, {stored: 100}, {(stored, f"{time}#x"): 10 for time in times})


@pytest.mark.parametrize(
    ("hot", "state", "cause", "command"),
    [
        (
            accesses("2027-01-14", "2027-01-15T07", "2027-01-16"),
            status(epochs=EPOCHS),
            "67% of the throttled items have keys from before 2027-01-15 08:00:00Z",
            None,
        ),
        (accesses("2027-01-14", "2027-01-16", "2027-01-17"), status(epochs=EPOCHS), "a few shards", "reshard start"),
        (accesses(), status(epochs=EPOCHS), "a few shards", "reshard start ordered-accesses abc:/a --to 32"),
        (accesses(), status(epochs=EPOCHS * 32), "64 epochs, the most", None),
        (
            accesses(),
            status(target=16, stage="confirmed", epochs=EPOCHS),
            "holds for keys of some seconds from now on",
            "reshard status ordered-accesses abc:/a --watch",
        ),
        (
            accesses(),
            status(cause="throttle", since=NOW - 999, epochs=EPOCHS),
            "has changed to 16 meanwhile",
            "hot --minutes 1",
        ),
    ],
)
def test_epochs_hold_for_later_keys_only(hot: Hot, state: Status, cause: str, command: str | None) -> None:
    verdict = judged(hot, state, most=1024, begin=NOW - 900)

    assert cause in verdict.cause
    assert (verdict.command or "").startswith(command or "")
    assert (verdict.command is None) == (command is None)


def test_a_count_at_the_maximum_of_its_declaration_is_raised_by_hand() -> None:
    verdict = judged(users(*SIXTEEN), status(), most=16)

    assert "`max` of its declaration" in verdict.cause
    assert verdict.command == "reshard start users abc --to 32"


@pytest.mark.parametrize(
    ("since", "cause", "said"),
    [(NOW - 60, "throttle", "its count has changed to 16 meanwhile"), (NOW - 901, "throttle", "too few"),
     (NOW - 60, None, "too few")],
    ids=["meanwhile", "before", "first count"],
)  # fmt: skip
def test_a_count_that_has_changed_while_throttles_were_counted_may_be_enough(
    since: float, cause: str | None, said: str
) -> None:
    verdict = judged(users(*SIXTEEN), status(since=since, cause=cause), most=1024, begin=NOW - 900)

    assert said in verdict.cause


def test_a_resize_that_was_declined_is_for_a_person_to_decide() -> None:
    state = status(since=NOW - 60, cause="throttle", taken_back=64, declined="it takes about 2 hours")

    verdict = judged(users(*SIXTEEN), state, most=1024, begin=NOW - 900)

    assert "a resize to 64 did not start by itself: it takes about 2 hours" in verdict.cause
    assert verdict.command == "reshard start users abc --to 64"


@pytest.mark.parametrize(
    "state",
    [
        status(since=NOW - 60, cause="operator", taken_back=32),
        status(since=NOW - 60, cause="quiet", taken_back=8, declined="it takes about 2 hours"),
        status(cause="throttle", epochs=(EPOCHS[0], replace(EPOCHS[1], state="void"))),
    ],
    ids=["aborted", "declined to be halved", "void epoch"],
)
def test_a_resize_that_was_taken_back_has_changed_no_count(state: Status) -> None:
    verdict = judged(users(*SIXTEEN), state, most=1024, begin=NOW - 900)

    assert "too few shards" in verdict.cause
    assert verdict.command == "reshard start users abc --to 32"


def test_the_printed_command_is_quoted_for_the_shell() -> None:
    place = place_of("audit.v1.Access:abc:/it's; a file.txt:0", None, ENTITIES)
    assert place is not None
    hot = Hot(place, {"audit.v1.Access:abc:/it's; a file.txt:0": 10})

    command = judged(hot, status(count=1), most=1024).command

    assert command is not None
    assert shlex.split(command) == ["reshard", "start", "accesses", "abc:/it's; a file.txt", "--to", "2"]


def test_nothing_but_the_live_simulation_reports_throttles_locally() -> None:
    assert simulated(None) is None
    assert simulated("http://127.0.0.1:9") is None


def test_an_index_is_described_by_its_partition_keys() -> None:
    keys = [f"user.v1.User:{tenant}:legal:{shard}" for tenant in ("abc", "xyz") for shard in range(4)]
    place = place_of(keys[0], "GSI2", ENTITIES)
    assert place is not None
    hot, state = Hot(place, dict.fromkeys(keys, 10)), status(partition=None, index="GSI2", count=4)

    found = as_dict(hot, state, judged(hot, state, most=1024), environment=None)

    assert lines([found]) == [
        "user.v1.User by index by_department: 80 throttles on 8 partition keys; it has too few shards for its traffic",
        "    dynashard reshard start users --index by_department --to 8",
    ]


def test_a_person_reads_where_how_many_why_and_what_to_type() -> None:
    hot = users(*SIXTEEN)
    found = as_dict(hot, status(), judged(hot, status(), most=1024), environment="prod")

    assert lines([found]) == [
        "user.v1.User abc: 1,600 throttles on 16 of 16 shards; it has too few shards for its traffic",
        "    dynashard reshard start users abc --to 32 --env prod",
    ]
