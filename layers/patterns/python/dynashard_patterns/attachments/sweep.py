"""Removes versions that no item points to: what interrupted writes and deletes, and items that expired, have left."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from dynashard.entity import EntityDefinition, ItemKey, Undecodable
from dynashard.errors import InvalidKeyError
from dynashard.repository.item_reads import reader_of
from dynashard.repository.projection import Reading
from dynashard.repository.store import Store
from dynashard.routing import logical_partition_of
from dynashard.schema import PK, SK
from dynashard.transport.interface import Wire
from dynashard_patterns.attachments.pieces import BUCKETS, Manifest, Pieces, Place, kind_of
from dynashard_patterns.attachments.pointer import pointers
from dynashard_patterns.attachments.versions import GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class Swept:
    """How far a sweep has come.

    Attributes:
        versions: how many versions it has read.
        young: how many of them were too young to judge.
        removed: how many it has removed, with so many `pieces`.
        last: what it removed since the state before.
        unreadable: what it found since then in place of manifests, and left as it is.
    """

    versions: int = 0
    young: int = 0
    removed: int = 0
    pieces: int = 0
    last: tuple[Manifest, ...] = field(default=(), compare=False)
    unreadable: tuple[Undecodable, ...] = field(default=(), compare=False)


def sweep(
    store: Store,
    entity: EntityDefinition[Any],
    *,
    undeclared: Iterable[str] = (),
    grace: float = GRACE_SECONDS,
    dry: bool = False,
) -> Iterator[Swept]:
    """Remove the versions of an entity's attachments that no item points to.

    A version is left alone for as long as its writer may still make it current, and that of an expired item for as
    long as another clock may be behind. It may be stopped and run again at any time.

    Args:
        store: the table.
        entity: the entity.
        undeclared: fields with attachments that are not declared any more. Items that point to versions of them keep
            these, so that a release that declares them can return.
        grace: how old a version must be, in seconds; more than the 15 minutes that a writer has.
        dry: only look.

    Returns:
        After each page of manifests, what was done so far.

    Cost: 0.5 read units for every 10 versions, 1 for each item of those older than `grace`, and what it costs to
    remove what is left over: 1 write unit a KB.
    """
    done, found = Swept(), Pieces(store)
    for name in (*entity.attachments, *undeclared):
        for bucket in range(BUCKETS):
            for page in found.manifests(kind_of(entity, name), bucket):
                known, unreadable = _own(entity, name, page)
                old = [each for each in known if each.since <= store.now() - grace]
                lost = _unreferenced(store, entity, name, old, grace)
                for each in [] if dry else lost:
                    found.remove(each.place, each.version, each.pieces)
                done = Swept(
                    done.versions + len(page),
                    done.young + len(known) - len(old),
                    done.removed + len(lost),
                    done.pieces + sum(each.pieces for each in lost),
                    tuple(lost),
                    tuple(unreadable),
                )
                yield done


def missing_pieces(store: Store, entity: EntityDefinition[Any], item: Wire) -> dict[str, int]:
    """Return how many pieces of the versions that an item points to are missing, by field.

    Fields without missing pieces are left out. The item may have been written meanwhile and then points to other
    versions, so read it again before you report it.

    Cost: what reading its pieces costs; 1 Query a field and MB.
    """
    key = ItemKey(logical_partition_of(entity, item[PK]["S"]), item[SK]["S"])
    lacking: dict[str, int] = {}
    for name, pointer in pointers(item, entity.attachments).items():
        there = Pieces(store).count(Place.of(entity, name, key), pointer.version)
        if there < pointer.pieces:
            lacking[name] = pointer.pieces - there
    return lacking


def _own(
    entity: EntityDefinition[Any], name: str, page: Iterable[Manifest | Undecodable]
) -> tuple[list[Manifest], list[Undecodable]]:
    """Divide what was read into manifests and what is none, or names another item than its key does."""
    known, unreadable = list[Manifest](), list[Undecodable]()
    for each in page:
        if isinstance(each, Undecodable):
            unreadable.append(each)
        elif not _names_its_item(entity, name, each):
            # The version may be the one to which the item of its key points.
            problem = f"it is the manifest of another item's attachment: {each.place.key}"
            unreadable.append(Undecodable(each.place.partition, each.sort, problem))
        else:
            known.append(each)
    return known, unreadable


def _names_its_item(entity: EntityDefinition[Any], name: str, manifest: Manifest) -> bool:
    key = manifest.place.key
    if not (key.partition and key.sort):
        return False
    with suppress(InvalidKeyError):
        return Place.of(entity, name, key) == manifest.place
    return False


def _unreferenced(
    store: Store, entity: EntityDefinition[Any], name: str, versions: list[Manifest], grace: float
) -> list[Manifest]:
    """Those of the versions that no item points to."""
    reader = reader_of(_Forgiving(**structs.asdict(store), grace=grace), entity)
    items = reader.read_all(list(dict.fromkeys(each.place.key for each in versions)), Reading(consistent=True))
    return [each for each in versions if not _points(items.get(each.place.key), name, each)]


class _Forgiving(Store, frozen=True):
    """A store whose readers find items up to `grace` seconds after they have expired.

    Its clock is that of the others, because views of shard counts end by it. By a clock that is behind, a reader would
    take an answer for timely that a resize has overtaken, and an item that has moved for one that is gone.
    """

    grace: float = 0.0

    def now(self) -> int:
        """Return the time by which items expire, in epoch seconds."""
        return int(self.runtime.clock() - self.grace)


def _points(item: Wire | None, name: str, version: Manifest) -> bool:
    return any(each.version == version.version for each in pointers(item, [name]).values())
