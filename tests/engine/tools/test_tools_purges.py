"""Purges are recorded where no restore undoes them, and a restored table gets those again that it lacks."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from dynashard.errors import UndecodableItemError
from dynashard.schema import IDEMPOTENCY_KEY, IDEMPOTENCY_TTL
from dynashard.testing.faults import FaultyTransport, throttled
from dynashard.transport import Transport
from dynashard_tools.account.records import PurgeRecord, PurgeRecords, tenants_to_repeat
from tests.engine.command_line import CommandLine, user
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now.timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def purges(transport: Transport, records: str, clock: Clock) -> Iterator[PurgeRecords]:
    return PurgeRecords(transport, records, clock)  # type: ignore[return-value]


def test_purges_are_kept_from_their_beginning_until_no_restore_can_undo_them(
    purges: PurgeRecords, clock: Clock, dynamodb: RawDynamoDB, records: str
) -> None:
    first = purges.begin("abc", "items")
    clock.now += timedelta(hours=13)
    purges.begin("xyz", "items")
    done = purges.end(first, 12)

    assert [(each.tenant, each.ended, each.items) for each in purges.all()] == [
        ("abc", done.ended, 12),
        ("xyz", None, 0),
    ]
    [row, _] = dynamodb.call("Scan", TableName=records)["Items"]
    kept = datetime.fromtimestamp(int(row[IDEMPOTENCY_TTL]["N"]), UTC)
    assert kept - NOON >= timedelta(days=35)
    clock.now = NOON + timedelta(days=36)
    assert {each.tenant for each in purges.all()} == {"abc", "xyz"}


@pytest.mark.parametrize(
    ("minutes", "lacking"),
    [(-60, ["abc", "xyz"]), (5, ["abc", "xyz"]), (14, ["abc", "xyz"]), (16, ["xyz"])],
    ids=["before", "during", "within the skew of clocks", "after"],
)
def test_tables_of_a_moment_lack_the_purges_that_had_not_ended(
    purges: PurgeRecords, clock: Clock, minutes: int, lacking: list[str]
) -> None:
    first = purges.begin("abc", "items")
    purges.begin("xyz", "items")
    clock.now += timedelta(minutes=10)
    purges.end(first, 1)

    undone = purges.undone_by(NOON + timedelta(minutes=minutes))

    assert [each.tenant for each in undone] == lacking


def test_what_another_version_or_an_idempotent_create_has_stored_is_left_alone(
    purges: PurgeRecords, dynamodb: RawDynamoDB, records: str
) -> None:
    purges.begin("abc", "items")
    key = {IDEMPOTENCY_KEY: {"S": "purges#2026-11-23"}}
    newer = '{"id": "n", "tenant": "new", "table": "t", "began": 1.0, "reason": "asked"}'
    dynamodb.call(
        "UpdateItem",
        TableName=records,
        Key=key,
        UpdateExpression="SET #a = :a, another = :b",
        ExpressionAttributeNames={"#a": "purge-n"},
        ExpressionAttributeValues={":a": {"S": newer}, ":b": {"S": "x"}},
    )

    purges.begin("xyz", "items")

    assert {each.tenant for each in purges.all()} == {"abc", "xyz", "new"}
    row = dynamodb.call("GetItem", TableName=records, Key=key)["Item"]
    assert (row["purge-n"]["S"], row["another"]["S"]) == (newer, "x")


@pytest.mark.parametrize("damaged", [{"S": "{"}, {"S": '{"id": "n", "table": "t", "began": 1.0}'}, {"N": "1"}])
def test_a_damaged_record_is_named_and_not_passed_over(
    purges: PurgeRecords, dynamodb: RawDynamoDB, records: str, damaged: dict[str, str]
) -> None:
    purges.begin("abc", "items")
    row = {IDEMPOTENCY_KEY: {"S": "purges#2026-11-22"}, "purge-n": damaged}
    dynamodb.call("PutItem", TableName=records, Item=row)

    with pytest.raises(UndecodableItemError, match=r"purge-n of purges#2026-11-22 .* is damaged: find out whose purge"):
        purges.undone_by(NOON)


def test_a_repeated_purge_counts_only_if_it_is_complete_and_later() -> None:
    def record(tenant: str, table: str, began: float, ended: float | None) -> PurgeRecord:
        return PurgeRecord(f"{tenant}{began}", tenant, table, began, ended)

    known = [
        record("done", "old", 1, 2), record("done", "new", 3, 4),
        record("interrupted", "old", 1, 2), record("interrupted", "new", 3, None),
        record("again", "new", 1, 2), record("again", "old", 3, 4),
        record("only", "old", 1, None), record("there", "new", 1, 2),
        record("", "old", 1, None), record("a:b", "old", 1, None),
    ]  # fmt: skip

    assert tenants_to_repeat(known, "new") == ["again", "interrupted", "only"]


def test_a_purge_is_recorded_and_listed(command_line: CommandLine, tenant: str) -> None:
    rows = command_line.file("users.jsonl", *(user(number, tenant_id=tenant) for number in range(3)))
    command_line.run("load", "users", rows, "--tenant", tenant)
    command_line.run("account", "purge", tenant)
    counted = command_line.run("account", "purges", "--json").summary["purges"]

    command_line.run("account", "purge", tenant, "--confirm", tenant)

    [kept] = [
        each for each in command_line.run("account", "purges", "--json").summary["purges"] if each["tenant"] == tenant
    ]
    assert tenant not in {each["tenant"] for each in counted}
    assert kept["ended"] >= kept["began"]
    assert kept["items"] > 0
    assert f"{tenant}: {kept['items']} items removed by" in command_line.run("account", "purges").out


def test_nothing_is_removed_without_a_record(transport: Transport, records: str, clock: Clock) -> None:
    refusing = PurgeRecords(FaultyTransport(transport, [throttled("UpdateItem")]), records, clock)

    with pytest.raises(Exception, match="throttl"):
        refusing.begin("abc", "items")

    assert PurgeRecords(transport, records, clock).all() == []
