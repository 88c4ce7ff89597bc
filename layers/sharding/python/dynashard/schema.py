"""Names and limits of the stored format.

The CDK stacks and the sharding layer both import this module, so they agree. It imports nothing.
"""

from typing import Final

PK: Final = "PK"
SK: Final = "SK"
TYPE: Final = "Type"
"""Name of the entity an item belongs to, because several entities can share a logical partition."""
REV: Final = "Rev"
"""Random id of the last write of the item: ETag, compare-and-swap token, and how a retried write recognises itself."""
PREV: Final = "Prev"
"""Revisions that compare-and-set writes and updates have replaced, newest first, separated by a space, up to
`PREV_LENGTH`. They prove the outcome of a write whose answer was lost. A create or a plain put stores none."""
PREV_LENGTH: Final = 3
BORN: Final = "Born"
"""Revision of the item's creation, kept by compare-and-set writes, updates and moves. Without it and without `Prev` it
is `Rev`; without it and with `Prev` it is not known."""
VERSION: Final = "Ver"
"""Version of the declaration in whose form the item is stored. An item without it is of version 1."""
EXPIRES_AT: Final = "ExpiresAt"
"""TTL, in epoch seconds."""
MOVED_TO: Final = "MovedTo"
"""On a relocation marker: the shard count under which the item's home is now."""
MOVED_FROM: Final = "MovedFrom"
"""On a moved item: the shard count it came from."""

OWNER_PARTITION: Final = "OwnerPartition"
"""On the reservation of a unique value: the logical partition of the item that has the value."""
OWNER_SORT: Final = "OwnerSort"
"""On the reservation of a unique value: the sort key of the item that has the value."""
OWNER_REV: Final = "OwnerRev"
"""On the reservation of a unique value: the revision of the write that took it."""

INDEX_SLOTS: Final = ("GSI1", "GSI2", "GSI3")


def index_pk(slot: str) -> str:
    """Name of the partition key attribute of an index slot, such as `GSI1PK`."""
    return f"{slot}PK"


def index_sk(slot: str) -> str:
    """Name of the sort key attribute of an index slot, such as `GSI1SK`."""
    return f"{slot}SK"


SYSTEM_ATTRIBUTES: Final = frozenset(
    {PK, SK, TYPE, REV, PREV, BORN, VERSION, EXPIRES_AT, MOVED_TO, MOVED_FROM}
    | {index_pk(slot) for slot in INDEX_SLOTS}
    | {index_sk(slot) for slot in INDEX_SLOTS}
)

MAX_PARTITION_KEY_BYTES: Final = 2048
MAX_SORT_KEY_BYTES: Final = 1024
MARKER_BYTES: Final = 64
"""Bytes that every item leaves free for the attributes of a relocation marker."""
MAX_ITEM_BYTES: Final = 400 * 1024 - MARKER_BYTES
MAX_FIELDS: Final = 400
"""The most fields of an entity: an update that sets them all has an expression of at most 4 KB, DynamoDB's limit."""
MAX_SHARDS: Final = 1024
MAX_ATTACHMENT_BYTES: Final = 16 * 1024 * 1024
"""The most that one attachment may hold, as JSON."""

TOPOLOGY_KEY: Final = "partition"
"""Partition key of the topology table: `<family>` for all logical partitions of a family of entities,
`<family>:<fields>` for a single one, `<family>|<slot>` for an index."""
TOPOLOGY_COUNT: Final = "number_of_shards"
TOPOLOGY_UPDATED: Final = "last_updated"
"""Epoch seconds of the last update of the record, never the same twice. Conditional updates compare them."""
TOPOLOGY_HISTORY: Final = "shard_history"
"""String set of `epoch:count`, the newest ones."""
TOPOLOGY_PHASE: Final = "phase"
TOPOLOGY_SINCE: Final = "phase_since"
"""Epoch seconds when the phase was published."""
TOPOLOGY_TARGET: Final = "target"
TOPOLOGY_LEASE: Final = "lease"
"""The longest time, in seconds, that anybody may use a view. The record of a family decides for all of its members."""
TOPOLOGY_FORMER_LEASE: Final = "former_lease"
"""The longest lease, in seconds, that was given out before the lease was lowered."""
TOPOLOGY_LOWERED: Final = "lease_lowered_at"
"""Epoch seconds when the lowered lease was seen in the record: nobody was given the former one after that."""
TOPOLOGY_SWEPT: Final = "swept"
TOPOLOGY_RESIZE: Final = "change"
"""Map with the controller's data about the resize that is under way."""
TOPOLOGY_DIFFER: Final = "partitions_differ_since"
"""Epoch seconds since when single logical partitions may have records of their own."""
TOPOLOGY_ACTIVE: Final = "changing"
"""String set of the records of the family that are changing or not swept yet."""
TOPOLOGY_EPOCHS: Final = "epochs"
"""List of the epochs of key time, each with its first sort key, its shard count and its state. Absent while one count
holds for all keys."""
TOPOLOGY_PLACED_BY_EPOCHS: Final = "epochs"
"""In place of a phase in a record that has epochs, so that releases that know none refuse the record."""
TOPOLOGY_FORMER_COUNTS: Final = "former_counts"
"""Of an index: the counts by which entries may still stand that were written before it grew for new entries alone."""
TOPOLOGY_BACKFILLED: Final = "backfilled"
"""Of a family: map of what backfills have completed: an entity's version by its name, the templates of an index by the
entity's name and the slot."""
TOPOLOGY_ATTRIBUTES: Final = frozenset(
    {TOPOLOGY_KEY, TOPOLOGY_COUNT, TOPOLOGY_UPDATED, TOPOLOGY_HISTORY, TOPOLOGY_PHASE, TOPOLOGY_SINCE, TOPOLOGY_TARGET}
    | {TOPOLOGY_LEASE, TOPOLOGY_FORMER_LEASE, TOPOLOGY_LOWERED, TOPOLOGY_SWEPT, TOPOLOGY_RESIZE, TOPOLOGY_DIFFER}
    | {TOPOLOGY_ACTIVE, TOPOLOGY_EPOCHS, TOPOLOGY_FORMER_COUNTS, TOPOLOGY_BACKFILLED}
)
"""What a record of the topology table has. Attributes of other names belong to another release."""
TOPOLOGY_UNDERSTOOD: Final = (TOPOLOGY_EPOCHS, TOPOLOGY_FORMER_COUNTS)
"""Attributes without which a release cannot work on what the record is about. The versions of a release name those that
it understands."""
TOPOLOGY_HISTORY_LENGTH: Final = 20

IDEMPOTENCY_KEY: Final = "id"
"""Partition key of the idempotency table."""
IDEMPOTENCY_TTL: Final = "expiration"
