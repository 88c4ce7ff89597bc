"""Reads the stream of a local table in the format of Lambda's events, and stores positions in it."""

import base64
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from dynashard_local.account import ACCOUNT_ID, REGION
from dynashard_local.engine.tables import engine_client

Record = dict[str, Any]

_DIGITS: Final = 21
"""Of a sequence number, at least; the local engine counts from 1."""
_LIST_EVERY: Final = 300
"""Polls between two lists of the stream's shards: a minute. The local engine reads all of the stream for a list, which
takes a second for a million records."""


def streams_client(endpoint: str) -> Any:
    """Return a client for the local engine's streams."""
    # The engine's shard ids and sequence numbers are shorter than the client's model allows.
    return engine_client(endpoint, "dynamodbstreams", parameter_validation=False)


def stream_of(endpoint: str, table: str) -> str:
    """Return the ARN of a table's stream; raises `LookupError` if the table has none."""
    found = engine_client(endpoint).describe_table(TableName=table)["Table"].get("LatestStreamArn")
    if not found:
        raise LookupError(f"table {table} has no stream")
    return str(found)


@dataclass
class Stream:
    """The records of a table's stream."""

    client: Any
    arn: str
    table: str
    _shards: list[str] = field(default_factory=list)
    _polls: int = 0
    _iterators: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)

    def shards(self) -> list[str]:
        """Return the ids of its shards, oldest first."""
        if self._polls % _LIST_EVERY == 0:
            listed = self.client.describe_stream(StreamArn=self.arn)["StreamDescription"]["Shards"]
            self._shards = [str(shard["ShardId"]) for shard in listed]
        self._polls += 1
        return self._shards

    def after(self, shard: str, sequence: str | None, limit: int) -> list[Record]:
        """Return records of a shard after a sequence number, or from its beginning. Trimmed records are left out."""
        at, iterator = self._iterators.get(shard, ("", None))
        if at != sequence or iterator is None:
            iterator = self._iterator(shard, sequence)
        try:
            answer = self.client.get_records(ShardIterator=iterator, Limit=limit)
        except self.client.exceptions.ExpiredIteratorException:
            answer = self.client.get_records(ShardIterator=self._iterator(shard, sequence), Limit=limit)
        records = [self._event(record) for record in answer["Records"]]
        last = records[-1]["dynamodb"]["SequenceNumber"] if records else sequence
        self._iterators[shard] = (last, answer.get("NextShardIterator"))
        return records

    def _iterator(self, shard: str, sequence: str | None) -> str:
        asked = {"StreamArn": self.arn, "ShardId": shard}
        if sequence is not None:
            try:
                behind = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": sequence}
                return str(self.client.get_shard_iterator(**asked, **behind)["ShardIterator"])
            except self.client.exceptions.TrimmedDataAccessException:
                pass
        return str(self.client.get_shard_iterator(**asked, ShardIteratorType="TRIM_HORIZON")["ShardIterator"])

    def _event(self, record: Mapping[str, Any]) -> Record:
        event: dict[str, Any] = _plain(record)
        event["dynamodb"]["SequenceNumber"] = event["dynamodb"]["SequenceNumber"].zfill(_DIGITS)
        source = f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{self.table}/stream/{self.arn.rpartition('/')[2]}"
        return {**event, "awsRegion": REGION, "eventSourceARN": source}


def _plain(value: Any) -> Any:
    """Return a parsed value as the JSON that it was parsed from."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return int(value.timestamp()) if isinstance(value, datetime) else value


@dataclass
class Positions:
    """The position in each shard of a stream, in a file that survives a kill. It ignores those of other streams."""

    path: Path
    stream: str
    _known: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            kept = json.loads(self.path.read_text())
            self._known = kept["shards"] if kept["stream"] == self.stream else {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __getitem__(self, shard: str) -> str | None:
        return self._known.get(shard)

    def __setitem__(self, shard: str, sequence: str) -> None:
        self._known[shard] = sequence
        draft = self.path.with_suffix(".new")
        with draft.open("w") as file:
            json.dump({"stream": self.stream, "shards": self._known}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
