"""Names and limits of the stored format.

The CDK stacks and the sharding layer both import this module and agree by doing so. It knows nothing else.
"""

from typing import Final

PK: Final = "PK"
SK: Final = "SK"
TYPE: Final = "Type"
"""Name of the entity an item belongs to: decodes a logical partition that several entities share."""
REV: Final = "Rev"
"""Random id of the write that made the item what it is: ETag, compare-and-swap token, retry recognition."""
EXPIRES_AT: Final = "ExpiresAt"
"""TTL, in epoch seconds."""
MOVED_TO: Final = "MovedTo"
"""The mark: the item's home is under this shard count now."""
MOVED_FROM: Final = "MovedFrom"
"""On the copy a move has made: the shard count it came from."""

INDEX_SLOTS: Final = ("GSI1", "GSI2", "GSI3")


def index_pk(slot: str) -> str:
    """Name of the partition key attribute of an index slot, such as `GSI1PK`."""
    return f"{slot}PK"


def index_sk(slot: str) -> str:
    """Name of the sort key attribute of an index slot, such as `GSI1SK`."""
    return f"{slot}SK"


SYSTEM_ATTRIBUTES: Final = frozenset(
    {PK, SK, TYPE, REV, EXPIRES_AT, MOVED_TO, MOVED_FROM}
    | {index_pk(slot) for slot in INDEX_SLOTS}
    | {index_sk(slot) for slot in INDEX_SLOTS}
)

MAX_PARTITION_KEY_BYTES: Final = 2048
MAX_SORT_KEY_BYTES: Final = 1024
MARK_BYTES: Final = 64
"""Room every item leaves, so that a mark always fits beside its attributes."""
MAX_ITEM_BYTES: Final = 400 * 1024 - MARK_BYTES
MAX_SHARDS: Final = 1024

TOPOLOGY_KEY: Final = "partition"
"""Partition key of the topology table: a logical partition, or an entity's name for its defaults."""
TOPOLOGY_COUNT: Final = "number_of_shards"
TOPOLOGY_UPDATED: Final = "last_updated"
TOPOLOGY_HISTORY: Final = "shard_history"

IDEMPOTENCY_KEY: Final = "id"
"""Partition key of the idempotency table."""
IDEMPOTENCY_TTL: Final = "expiration"
