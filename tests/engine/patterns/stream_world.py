"""The streams of test tables, with records as Lambda delivers them."""

from collections.abc import Callable, Iterable
from typing import Any

from dynashard import Entity
from dynashard_local.workers.stream import Record, Stream, stream_of, streams_client
from dynashard_patterns import Change
from dynashard_patterns.changes import decode, watched
from tests.engine.raw_dynamodb import RawDynamoDB


class Streamed:
    """Streams of tables on one engine. Each table gets its stream at the first use."""

    def __init__(self, endpoint: str, dynamodb: RawDynamoDB) -> None:
        self.endpoint = endpoint
        self._dynamodb = dynamodb
        self._client = streams_client(endpoint)

    def on(self, table: str) -> Stream:
        """Return a reader of a table's stream."""
        if not self._dynamodb.call("DescribeTable", TableName=table)["Table"].get("LatestStreamArn"):
            specification = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
            self._dynamodb.call("UpdateTable", TableName=table, StreamSpecification=specification)
        return Stream(self._client, stream_of(self.endpoint, table), table)


def records_of(stream: Stream) -> list[Record]:
    """Return all records of a stream from its beginning."""
    found: list[Record] = []
    for shard in stream.shards():
        at = None
        while more := stream.after(shard, at, 1000):
            found += more
            at = more[-1]["dynamodb"]["SequenceNumber"]
    return found


def changes_of(records: Iterable[Record], *models: type[Entity]) -> list[Change[Any]]:
    """Return the changes that the records contain for some entities."""
    registry = watched(models)
    return [change for record in records if (change := decode(record, registry)) is not None]


def stories(changes: Iterable[Change[Any]], shown: Callable[[Any], Any]) -> dict[Any, list[tuple[str, Any, Any]]]:
    """Return the changes of each item in order: the kind, and the item before and after as `shown` represents it."""
    found: dict[Any, list[tuple[str, Any, Any]]] = {}
    for change in changes:
        before, after = (None if image is None else shown(image) for image in (change.old, change.new))
        found.setdefault(tuple(change.key.values()), []).append((change.kind, before, after))
    return found
