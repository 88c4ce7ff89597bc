"""The stream of a local table: its records as Lambda hands them to a function, and how far they were handled."""

import base64
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import botocore.session
from botocore.config import Config

from local.events import ACCOUNT_ID, REGION
from local.tables import CREDENTIALS, engine_client

Record = dict[str, Any]

_DIGITS: Final = 21
"""Of a sequence number, at least; the local engine counts from 1."""
_LIST_EVERY: Final = 300
"""How many looks at an idle stream go by before its parts are listed anew: a minute. The local engine reads all of the
stream for that, a second for a million records."""


def streams_client(endpoint: str) -> Any:
    """A client for the local engine's streams."""
    nothing = {"profile": (None, None, None, None), "config_file": (None, None, os.devnull, None)}
    session = botocore.session.Session(session_vars=nothing)
    session.set_credentials(CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
    # The engine's shard ids and sequence numbers are shorter than the client's model would have them.
    config = Config(parameter_validation=False, connect_timeout=5, read_timeout=30, proxies={})
    return session.create_client("dynamodbstreams", region_name=REGION, endpoint_url=endpoint, config=config)


def stream_of(endpoint: str, table: str) -> str:
    """The ARN of a table's stream. Raises `LookupError` if the table has none."""
    found = engine_client(endpoint).describe_table(TableName=table)["Table"].get("LatestStreamArn")
    if not found:
        raise LookupError(f"table {table} has no stream")
    return str(found)


@dataclass
class Stream:
    """The records of a table's stream, from any place on.

    Args:
        client: for streams.
        arn: of the stream.
        table: the table's name.
    """

    client: Any
    arn: str
    table: str
    _shards: list[str] = field(default_factory=list)
    _looks: int = 0
    _iterators: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)

    def shards(self) -> list[str]:
        """The ids of its parts, older ones first."""
        if self._looks % _LIST_EVERY == 0:
            told = self.client.describe_stream(StreamArn=self.arn)["StreamDescription"]["Shards"]
            self._shards = [str(shard["ShardId"]) for shard in told]
        self._looks += 1
        return self._shards

    def after(self, shard: str, sequence: str | None, limit: int) -> list[Record]:
        """Records of a part behind a sequence number, from its beginning if None; in the shape of Lambda's events.

        What the stream has forgotten is left out.
        """
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
        told: dict[str, Any] = _plain(record)
        sequence = told["dynamodb"]["SequenceNumber"]
        told["dynamodb"]["SequenceNumber"] = sequence.zfill(_DIGITS)
        source = f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{self.table}/stream/{self.arn.rpartition('/')[2]}"
        return {**told, "awsRegion": REGION, "eventSourceARN": source}


def _plain(value: Any) -> Any:
    """What the client has parsed, as the JSON that it came from."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return int(value.timestamp()) if isinstance(value, datetime) else value


@dataclass
class Places:
    """How far each part of a stream was handled, in a file that survives a kill.

    Args:
        path: the file.
        stream: the stream's ARN: places in another one mean nothing here.
    """

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
