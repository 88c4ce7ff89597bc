"""Checks of streams: order, duplicates, expired items, and filters."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dynashard import schema
from dynashard_checks.verify_aws.check import Check, Outcome, compare, differs, dollars_of, holds, unclear
from dynashard_checks.verify_aws.checks.items import key
from dynashard_checks.verify_aws.context import Context

_VERSIONS: Final = 20
_ITEMS: Final = 10
_ARRIVAL_SECONDS: Final = 60.0
_EMPTY_ANSWERS: Final = 10
_PAUSE_SECONDS: Final = 0.25
"""A shard of a stream answers five reads a second."""
_EXPIRY_SECONDS: Final = 6 * 3600.0
"""AWS deletes expired items within a few days; most go within hours."""
_STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
TTL_PRINCIPAL: Final = "dynamodb.amazonaws.com"


def records(context: Context, table: str, *, wanted: int, seconds: float) -> list[Mapping[str, Any]]:
    """Return the records of a table's stream, in the order of each of its shards; waits for a number of them."""
    streams = context.client("dynamodbstreams")
    arn = context.client("dynamodb").describe_table(TableName=table)["Table"]["LatestStreamArn"]

    def all_records() -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            found += _of_shard(context, arn, shard["ShardId"])
        return found

    read: list[Mapping[str, Any]] = []

    def enough() -> bool:
        read[:] = all_records()
        return len(read) >= wanted

    context.until(enough, seconds=seconds, every=min(60.0, max(2.0, seconds / 100)))
    return read


def _of_shard(context: Context, arn: str, shard: str) -> list[Mapping[str, Any]]:
    """Return the records of a shard. An open one never ends, so some empty answers in a row end the reading."""
    streams, found, empty = context.client("dynamodbstreams"), list[Mapping[str, Any]](), 0
    start = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    iterator = start["ShardIterator"]
    while iterator and empty < _EMPTY_ANSWERS:
        answer = streams.get_records(ShardIterator=iterator)
        found += answer["Records"]
        empty = 0 if answer["Records"] else empty + 1
        iterator = answer.get("NextShardIterator")
        context.clock.sleep(_PAUSE_SECONDS)
    return found


def order(context: Context) -> Outcome:
    """Write versions of some items, and compare their records with what was written."""
    table, dynamodb = context.scratch.table("stream", StreamSpecification=_STREAM), context.client("dynamodb")
    for version in range(_VERSIONS):
        for item in range(_ITEMS):
            dynamodb.put_item(TableName=table, Item=key(str(item)) | {"V": {"N": str(version)}})
    dynamodb.delete_item(TableName=table, Key=key("1"))
    found = records(context, table, wanted=_VERSIONS * _ITEMS + 1, seconds=_ARRIVAL_SECONDS)
    return judge_order(found)


def judge_order(found: Sequence[Mapping[str, Any]]) -> Outcome:
    """Judge the records of the writes of `order`."""
    histories: dict[str, list[str]] = {}
    for record in found:
        change = record["dynamodb"]
        version = change.get("NewImage", {}).get("V", {}).get("N", "deleted")
        histories.setdefault(change["Keys"][schema.PK]["S"], []).append(version)
    written = [str(version) for version in range(_VERSIONS)]
    expected = {str(item): written + (["deleted"] if item == 1 else []) for item in range(_ITEMS)}
    if sum(map(len, histories.values())) < _VERSIONS * _ITEMS + 1:
        return unclear(f"only {len(found)} of {_VERSIONS * _ITEMS + 1} records arrived in time")
    if histories != expected:
        wrong = {item: versions for item, versions in histories.items() if versions != expected.get(item)}
        return differs(f"versions in the stream, by item: {wrong}")
    identifiers = {record["eventID"] for record in found}
    return holds(f"{len(identifiers)} records, each version of each item once and in order")


def expired(context: Context) -> Outcome:
    """Store an expired item, and wait for the record of its deletion."""
    table, dynamodb = context.scratch.table("expiry", StreamSpecification=_STREAM), context.client("dynamodb")
    dynamodb.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": schema.EXPIRES_AT}
    )
    expiry = str(int(context.clock.now()) - 60)
    dynamodb.put_item(TableName=table, Item=key("expired") | {schema.EXPIRES_AT: {"N": expiry}})
    begun = context.clock.now()
    found = records(context, table, wanted=2, seconds=_EXPIRY_SECONDS)
    return judge_expiry(found, context.clock.now() - begun)


def judge_expiry(found: Sequence[Mapping[str, Any]], seconds: float) -> Outcome:
    """Judge the records of an item that has expired, after so many seconds."""
    removed = [record for record in found if record["eventName"] == "REMOVE"]
    if not removed:
        return unclear(f"the item was not deleted within {seconds / 3600:.1f} hours; AWS promises days")
    principal = removed[0].get("userIdentity", {}).get("principalId")
    if principal != TTL_PRINCIPAL:
        return differs(f"the deletion's principal is {principal!r} instead of {TTL_PRINCIPAL!r}")
    old = "OldImage" in removed[0]["dynamodb"]
    return holds(f"deleted after {seconds / 3600:.1f} hours by {principal}, with the old image: {old}")


def filters(context: Context) -> Outcome:
    """Match records with the patterns of the deployed mapping, and look at the mapping's state."""
    mappings = [
        mapping
        for mapping in _mappings(context)
        if mapping.get("FilterCriteria")
        and mapping["FunctionArn"].partition(":function:")[2].startswith(_prefix(context))
    ]
    if not mappings:
        return unclear("no function of the environment has a filter on a stream")
    patterns = [each["Pattern"] for mapping in mappings for each in mapping["FilterCriteria"]["Filters"]]
    events = context.client("events")
    seen: dict[str, Any] = {"state": sorted({mapping["State"] for mapping in mappings})}
    for name, image in _IMAGES.items():
        event = json.dumps(_event(image))
        matches = [events.test_event_pattern(EventPattern=pattern, Event=event)["Result"] for pattern in patterns]
        seen[name] = any(matches)
    return compare({"state": ["Enabled"], "not swept": True, "swept": False, "changing": True}, seen)


_COUNT: Final[Mapping[str, Any]] = {schema.TOPOLOGY_COUNT: {"N": "4"}}
_IMAGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "not swept": {**_COUNT, schema.TOPOLOGY_SWEPT: {"BOOL": False}},
    "swept": {**_COUNT, schema.TOPOLOGY_SWEPT: {"BOOL": True}},
    "changing": {**_COUNT, schema.TOPOLOGY_TARGET: {"N": "8"}},
}
"""Images of topology records: the filter passes on those of changes that are under way."""


def _event(image: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as an event; EventBridge asks for the members that it does not match."""
    about = {
        "id": "1",
        "account": "000000000000",
        "source": "aws:dynamodb",
        "time": "2026-01-01T00:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail-type": "record",
        "detail": {},
    }
    return about | {"dynamodb": {"NewImage": image, "OldImage": {}}}


def _mappings(context: Context) -> list[Mapping[str, Any]]:
    pages = context.client("lambda").get_paginator("list_event_source_mappings").paginate()
    return [mapping for page in pages for mapping in page["EventSourceMappings"]]


def _prefix(context: Context) -> str:
    return f"Dynashard-{context.environment.name}-"


CHECKS: Final = (
    Check(
        "stream-order",
        "a stream has each version of an item once and in order, and each record exactly once",
        order,
        dollars=dollars_of(write_units=_VERSIONS * _ITEMS + 1, read_units=100),
        local=True,
    ),
    Check(
        "stream-filter",
        "Lambda accepts the filter of the topology's stream, and its lists of booleans match",
        filters,
        needs_api=True,
    ),
    Check(
        "expired-items",
        f"DynamoDB deletes expired items by itself, and the record's principal is {TTL_PRINCIPAL}",
        expired,
        seconds=_EXPIRY_SECONDS,
        optional=True,
    ),
)
