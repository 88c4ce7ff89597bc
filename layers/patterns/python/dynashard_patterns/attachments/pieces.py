"""Where the versions of attachments are stored.

Each field of each item has a logical partition of its own, in the same table, unsharded and in no index:

    PK  incident.v1.Incident~details:abc:2afKsaDAEhv4mQL0SuX0MCA1QeB
    SK  m#<version>             the manifest: how many pieces, since when, and whose
        p#<version>#0000        the pieces

A manifest is written before the pieces and removed after them, so that whatever is stored can be found by manifests.
Only an attempt that is executed later than that, after another attempt of the same write was answered, leaves a piece
for ever, which nobody reads.
An index spreads them over `BUCKETS` partitions for each field of an entity, so that a sweep finds them all.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from dynashard.entity import EntityDefinition, ItemKey, Undecodable, judged
from dynashard.errors import InvalidKeyError, OutcomeUnknownError, UndecodableItemError
from dynashard.placement import CALCULATED
from dynashard.repository.store import Store
from dynashard.routing import wire_key
from dynashard.schema import MAX_SORT_KEY_BYTES, PK, SK, TYPE, index_pk, index_sk
from dynashard.transport.interface import Call, Resend, Wire, answers_of
from dynashard.transport.paging import pages

BUCKETS: Final = 16
_SLOT: Final = "GSI3"
_KEY_ROOM: Final = 64
"""What the index's sort key needs besides the item's key."""
_MANIFEST: Final = "m#"
_AT_A_TIME: Final = 8
"""Requests that carry pieces, under way at a time: 3 MB."""


def kind_of(entity: EntityDefinition[Any], field: str) -> str:
    """Return the beginning of an attachment's stored partition keys. It is unique, because no entity's name has `~`."""
    return f"{entity.name}~{field}"


def field_of(entity: EntityDefinition[Any], row: Wire) -> str | None:
    """Return the field of which a stored row is a part of an attachment, declared or not; None for another row."""
    kind = row.get(TYPE, {}).get("S", "")
    name, _, field = kind.partition("~")
    # The reservation of a unique value has two.
    its = name == entity.name and field and "~" not in field and row[PK]["S"].startswith(f"{kind}:")
    return field if its else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the versions of one field of one item are.

    Attributes:
        kind: what the entity and the field are called together; the `Type` of all that is stored.
        key: the item's key.
        name: the item's partition fields and sort key, in one text.
    """

    kind: str
    key: ItemKey
    name: str

    @classmethod
    def of(cls, entity: EntityDefinition[Any], field: str, key: ItemKey) -> Self:
        """The place for a field of an item.

        Raises:
            InvalidKeyError: the item's key is too long.
        """
        beginning = f"{entity.prefix}{entity.separator}" if entity.prefix else ""
        name = f"{key.partition.removeprefix(beginning)}:{key.sort}"
        if len(name.encode()) > MAX_SORT_KEY_BYTES - _KEY_ROOM:
            raise InvalidKeyError(
                f"the key of an item with attachments has at most {MAX_SORT_KEY_BYTES - _KEY_ROOM} bytes"
            )
        return cls(kind_of(entity, field), key, name)

    @property
    def partition(self) -> str:
        """The stored partition key."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is stored of a version, current or not: at most so many pieces, begun at `since` in epoch seconds."""

    place: Place
    version: str
    pieces: int
    since: int

    @property
    def sort(self) -> str:
        """Its stored sort key."""
        return f"{_MANIFEST}{self.version}"

    def stored(self) -> Wire:
        """The manifest as an item, about 300 bytes."""
        place = self.place
        bucket = CALCULATED.shard(CALCULATED.hash(place.partition), BUCKETS)
        return {
            **wire_key((place.partition, self.sort)),
            TYPE: {"S": place.kind},
            "Partition": {"S": place.key.partition},
            "Sort": {"S": place.key.sort},
            "Pieces": {"N": str(self.pieces)},
            "Since": {"N": str(self.since)},
            index_pk(_SLOT): {"S": f"{place.kind}:{bucket}"},
            index_sk(_SLOT): {"S": f"{place.name}:{self.version}"},
        }

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Self:
        """The manifest in a stored item.

        Raises:
            UndecodableItemError: it is none.
        """
        try:
            kind = item[TYPE]["S"]
            key = ItemKey(item["Partition"]["S"], item["Sort"]["S"])
            place = Place(kind, key, item[PK]["S"].removeprefix(f"{kind}:"))
            version = item[SK]["S"].removeprefix(_MANIFEST)
            return cls(place, version, int(item["Pieces"]["N"]), int(item["Since"]["N"]))
        except (KeyError, ValueError) as error:
            raise UndecodableItemError(f"it is not the manifest of an attachment: {error!r}") from None


class Pieces:
    """The stored versions of attachments in a table.

    Its writes may always be sent again: a version has keys of its own, is written with one content only, and is never
    used again after it was removed. No reader sees a late write, because readers follow the pointer of the item.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, manifest: Manifest, pieces: Sequence[bytes]) -> None:
        """Store a version. Readers do not see it before an item points to it.

        Cost: 2 write units for the manifest and its index entry, 1 for each KB of the pieces; 2 round trips for up
        to 8 pieces.
        """
        request = {"TableName": self._store.table, "Item": manifest.stored()}
        self._store.transport.call("PutItem", request, resend=Resend.ALWAYS)
        kind = {TYPE: {"S": manifest.place.kind}}
        items = [
            {**wire_key(key), **kind, "Data": {"B": base64.b64encode(piece).decode()}}
            for key, piece in zip(_keys(manifest.place, manifest.version, manifest.pieces), pieces, strict=True)
        ]
        table = self._store.table
        self._send([Call("PutItem", {"TableName": table, "Item": item}, Resend.ALWAYS) for item in items])

    def read(self, place: Place, version: str, count: int, *, consistent: bool) -> list[bytes] | None:
        """The pieces of a version; None if one of them is not there.

        Cost: 0.5 read units for every 4 KB, 1 if consistent; 1 round trip for up to 8 pieces.
        """
        options = {"ConsistentRead": True} if consistent else {}
        keys = _keys(place, version, count)
        answers = self._send(
            [Call("GetItem", {"TableName": self._store.table, "Key": wire_key(key), **options}) for key in keys]
        )
        found = [answer.get("Item") for answer in answers]
        return None if None in found else [base64.b64decode(item["Data"]["B"]) for item in found if item]

    def count(self, place: Place, version: str) -> int:
        """How many pieces of a version are stored. Cost: as a consistent `read`; 1 round trip for 1 MB."""
        request: Wire = {
            "TableName": self._store.table,
            "KeyConditionExpression": f"{PK} = :place AND begins_with({SK}, :version)",
            "ExpressionAttributeValues": {":place": {"S": place.partition}, ":version": {"S": f"p#{version}#"}},
            "Select": "COUNT",
            "ConsistentRead": True,
        }
        return sum(int(answer["Count"]) for answer in pages(self._store.transport, Call("Query", request)))

    def remove(self, place: Place, version: str, count: int) -> None:
        """Remove a version and then its manifest. Cost: as writing it."""
        keys = _keys(place, version, count)
        table, last = self._store.table, wire_key((place.partition, f"{_MANIFEST}{version}"))
        self._send([Call("DeleteItem", {"TableName": table, "Key": wire_key(key)}, Resend.ALWAYS) for key in keys])
        self._store.transport.call("DeleteItem", {"TableName": table, "Key": last}, resend=Resend.ALWAYS)

    def manifests(self, kind: str, bucket: int) -> Iterator[list[Manifest | Undecodable]]:
        """The manifests of a `Place.kind` in a bucket of the index, and what stands there and is none, page by page.

        Cost: 0.5 read units for every 4 KB, about 10 manifests; 1 round trip for 1 MB.
        """
        request: Wire = {
            "TableName": self._store.table,
            "IndexName": _SLOT,
            "KeyConditionExpression": f"{index_pk(_SLOT)} = :kind",
            "ExpressionAttributeValues": {":kind": {"S": f"{kind}:{bucket}"}},
        }
        for answer in pages(self._store.transport, Call("Query", request)):
            yield [judged(Manifest.of, item) for item in answer["Items"]]

    def _send(self, calls: Sequence[Call]) -> list[Wire]:
        answers = self._store.transport.try_all(calls, concurrency=_AT_A_TIME)
        # It comes before other errors: what may still be executed must not lose its manifest.
        if lost := [each for each in answers if isinstance(each, OutcomeUnknownError)]:
            raise lost[0]
        return answers_of(answers)


def _keys(place: Place, version: str, count: int) -> list[tuple[str, str]]:
    return [(place.partition, f"p#{version}#{number:04d}") for number in range(count)]
