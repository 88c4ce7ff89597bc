"""Create the two tables of the layer, and check that existing ones fit: the items, and the shard counts.

The stacks and the local stack create tables of the same schema from a CloudFormation template, which a test compares
with this one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynashard.errors import ConfigurationError, EngineError, EngineUnavailableError
from dynashard.runtime import SYSTEM, Runtime
from dynashard.schema import EXPIRES_AT, INDEX_SLOTS, PK, SK, TOPOLOGY_KEY, index_pk, index_sk
from dynashard.transport.interface import Transport, Wire

CREATION_SECONDS: Final = 300.0
"""How long to wait until a created table can be used. DynamoDB needs some 10 seconds."""
_PAUSE: Final = 1.0
_ACTIVE: Final = "ACTIVE"


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Keys, indexes and TTL of a table, all of whose keys are texts.

    Attributes:
        keys: the partition key, and the sort key if there is one.
        indexes: the keys of each index by its name. Each has all attributes.
        expires_at: the attribute by which DynamoDB deletes items, None for no such attribute.
    """

    keys: tuple[str, ...]
    indexes: Mapping[str, tuple[str, ...]]
    expires_at: str | None = None

    def request(self, name: str, *, stream: bool = True) -> Wire:
        """Return the CreateTable request of a table with this name, on demand, with a `stream` of both images."""
        names = dict.fromkeys([*self.keys, *(key for keys in self.indexes.values() for key in keys)])
        request: Wire = {
            "TableName": name,
            "KeySchema": _key_schema(self.keys),
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in names],
            "BillingMode": "PAY_PER_REQUEST",
        }
        if stream:
            request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        if self.indexes:
            request["GlobalSecondaryIndexes"] = [
                {"IndexName": index, "KeySchema": _key_schema(keys), "Projection": {"ProjectionType": "ALL"}}
                for index, keys in self.indexes.items()
            ]
        return request

    def mistakes(self, described: Mapping[str, Any]) -> list[str]:
        """Return in what an existing table differs so that the layer could not use it, as DescribeTable shows it."""
        kinds = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
        indexes = {index["IndexName"]: index for index in described.get("GlobalSecondaryIndexes") or ()}
        mistakes = _differing("its keys", self.keys, described, kinds)
        for name, keys in self.indexes.items():
            if name not in indexes:
                mistakes.append(f"it has no index {name} with the keys {_needed(keys)}")
                continue
            mistakes += _differing(f"the keys of index {name}", keys, indexes[name], kinds)
            if (projected := indexes[name]["Projection"]["ProjectionType"]) != "ALL":
                mistakes.append(f"index {name} projects {projected}, not ALL attributes")
        return mistakes


ITEMS: Final = TableSchema((PK, SK), {slot: (index_pk(slot), index_sk(slot)) for slot in INDEX_SLOTS}, EXPIRES_AT)
"""The table of items."""
TOPOLOGY: Final = TableSchema((TOPOLOGY_KEY,), {})
"""The table of shard counts."""


def create_tables(
    transport: Transport,
    *,
    table: str,
    topology_table: str | None,
    runtime: Runtime = SYSTEM,
) -> list[str]:
    """Create the tables that do not exist, and wait until all can be used; see `Dynashard.create_tables`."""
    wanted: list[tuple[str, TableSchema]] = [(table, ITEMS)]
    if topology_table is not None:
        wanted.append((topology_table, TOPOLOGY))
    missing = [(name, schema) for name, schema in wanted if _is_missing(transport, name, schema)]
    created = [name for name, schema in missing if _created(transport, name, schema)]
    for name, schema in wanted:
        _require_fits(name, schema, _active(transport, name, runtime))
        if schema.expires_at is not None:
            _ensure_expiry(transport, name, schema.expires_at)
    return created


def _is_missing(transport: Transport, name: str, schema: TableSchema) -> bool:
    described = _described(transport, name)
    if described is not None:
        # Before anything is created: a wrong name should leave nothing behind.
        _require_fits(name, schema, described)
    return described is None


def _created(transport: Transport, name: str, schema: TableSchema) -> bool:
    try:
        transport.call("CreateTable", schema.request(name))
    except EngineError as error:
        if error.aws_code != "ResourceInUseException":
            raise
        return False  # Another process was first.
    return True


def _described(transport: Transport, name: str) -> Wire | None:
    try:
        described: Wire = transport.call("DescribeTable", {"TableName": name})["Table"]
    except EngineError as error:
        if error.aws_code != "ResourceNotFoundException":
            raise
        return None
    return described


def _active(transport: Transport, name: str, runtime: Runtime) -> Wire:
    """Wait until a table and its indexes can be used, and return its description."""
    deadline = runtime.monotonic() + CREATION_SECONDS
    while True:
        described = _described(transport, name)
        # A table that was just created may not be known to all of DynamoDB's servers yet.
        if described is not None and _usable(described):
            return described
        if runtime.monotonic() >= deadline:
            status = "unknown" if described is None else described["TableStatus"]
            raise EngineUnavailableError(
                f"The table {name} is not ready after {CREATION_SECONDS:.0f} seconds; its status is {status}. "
                "Try again: tables that exist are kept.",
                operation="DescribeTable",
            )
        runtime.sleep(_PAUSE)


def _usable(described: Mapping[str, Any]) -> bool:
    """Whether requests are executed. A table that is being updated executes them too."""
    indexes = described.get("GlobalSecondaryIndexes") or ()
    return described["TableStatus"] in (_ACTIVE, "UPDATING") and all(
        index.get("IndexStatus", _ACTIVE) in (_ACTIVE, "UPDATING") for index in indexes
    )


def _require_fits(name: str, schema: TableSchema, described: Mapping[str, Any]) -> None:
    if mistakes := schema.mistakes(described):
        raise ConfigurationError(
            f"the table {name} exists and does not fit: {'; '.join(mistakes)}. Name another table, or make "
            "the one that exists fit: add a missing index with UpdateTable; keys of a table never change"
        )


def _ensure_expiry(transport: Transport, name: str, attribute: str) -> None:
    found = transport.call("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"]
    if found.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
        specification = {"Enabled": True, "AttributeName": attribute}
        transport.call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification})
    elif found["AttributeName"] != attribute:
        raise ConfigurationError(
            f"the table {name} deletes items by {found['AttributeName']}, not by {attribute}: items of entities "
            "with an expiry would stay. Disable its TTL, and create the tables again an hour later"
        )


def _key_schema(keys: Sequence[str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(keys, ("HASH", "RANGE"), strict=False)]


def _differing(what: str, keys: Sequence[str], of: Mapping[str, Any], kinds: Mapping[str, str]) -> list[str]:
    found, needed = _shown(of["KeySchema"], kinds), _needed(keys)
    return [] if found == needed else [f"{what} are {found}, not {needed}"]


def _needed(keys: Sequence[str]) -> str:
    return _shown(_key_schema(keys), dict.fromkeys(keys, "S"))


def _shown(key_schema: Sequence[Mapping[str, str]], kinds: Mapping[str, str]) -> str:
    ordered = sorted(key_schema, key=lambda each: each["KeyType"])
    return " and ".join(f"{each['AttributeName']} ({kinds[each['AttributeName']]})" for each in ordered)
