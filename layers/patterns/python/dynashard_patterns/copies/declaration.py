"""`MaterializedCopies`: a declared value that says of what there are copies, and how they are made."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.errors import DeclarationError
from dynashard.keys import KeyTemplate, TemplateField
from dynashard.service import Dynashard
from dynashard_patterns.changes import Consumer
from dynashard_patterns.copies.drift import Progress
from dynashard_patterns.copies.inspection import inspect
from dynashard_patterns.copies.materializer import Materializer, partition_of

S = TypeVar("S", bound=Entity)
C = TypeVar("C", bound=Entity)


@dataclass(frozen=True, slots=True)
class MaterializedCopies(Generic[S, C]):
    """Materialized copies: items of one entity that are derived from items of another, and updated with them.

        PARTICIPATIONS = MaterializedCopies(
            of=Incident, copy=Participation, make=participations, partition={"incident_id": "id"}
        )

    A logical partition of the copies' entity has all copies of one source, and no others. Its fields are the key fields
    of the source.

    Attributes:
        of: the entity of the sources.
        copy: the entity of the copies. Nobody else writes it.
        make: the copies of a source. It gives the same for the same source: no clock, no new ids.
        partition: fields of the copies' logical partition to key fields of the source, where they have other names.

    Raises:
        DeclarationError: a partition of copies is not that of one source.

    From then on sources whose keys the copies' keys cannot hold are refused where they are written.
    """

    of: type[S]
    copy: type[C]
    make: Callable[[S], Iterable[C]]
    partition: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        source, copy = definition(self.of), definition(self.copy)
        unknown = sorted(self.partition.keys() - set(copy.partition_fields))
        if unknown:
            raise DeclarationError(copy.name, f"{unknown[0]} is not a field of its partition, {copy.partition.text!r}")
        if self.of is self.copy or set(self.by.values()) != set(source.key_fields):
            raise DeclarationError(
                copy.name,
                f"its partition {copy.partition.text!r} must identify one {source.name}, whose key is "
                f"{', '.join(source.key_fields)}: use these fields, or name those that are called otherwise",
            )
        for entity in (source, copy):
            if entity.shards is not None and entity.shards.placement == "random":
                raise DeclarationError(
                    entity.name, "copies and their sources need keys that have one home, not a random one"
                )
        if copy.attachments:
            raise DeclarationError(copy.name, "copies are written in transactions, which hold no attachments")
        for mine, theirs in self.by.items():
            _check_times(source, copy, mine, theirs)
        source.add_check(self.name, partial(partition_of, copy, self.by))

    @property
    def name(self) -> str:
        """What it is called in logs and dead letters."""
        return f"copies:{definition(self.copy).name}"

    @property
    def by(self) -> dict[str, str]:
        """Fields of the copies' logical partition to key fields of the source, all of them."""
        return {name: self.partition.get(name, name) for name in definition(self.copy).partition_fields}

    def consumer(self, db: Dynashard) -> Consumer:
        """Return what carries changes of sources to their copies. Cost: as `Materializer.carry` for each source."""
        return Consumer(self.name, (self.of,), self.materializer(db).handle)

    def materializer(self, db: Dynashard) -> Materializer:
        """What brings the copies of single sources up to date. Costs nothing."""
        return Materializer(db, self.of, self.copy, self.make, self.by)

    def check(self, db: Dynashard, partition: Mapping[str, Any] | None = None) -> Iterator[Progress]:
        """As `repair`, but nothing is written.

        Changes on their way to copies count as drift, so check again while sources change.
        """
        return inspect(self.materializer(db), partition, mend=False)

    def repair(self, db: Dynashard, partition: Mapping[str, Any] | None = None) -> Iterator[Progress]:
        """Compare all sources and all copies, and write what differs; copies without a source are removed too.

        It may run at any time and be stopped at any time; run again, it finds nothing that it has mended. Sources of
        which no copies can be made are counted and passed over.

        Args:
            db: the entities.
            partition: the sources' logical partition, by its fields; all of them if None.

        Returns: how far it has come, after each step; the last one has the totals. Nothing happens unless it is read.

        Raises:
            InvalidKeyError: there can be no such partition.
            EngineError: retries did not help; run it again.

        Cost: a read of all sources, and for each a Query of its copies; then a Scan of the whole table, because
        only the keys of copies show that their source is gone. What differs is written as by `Materializer.carry`.
        """
        return inspect(self.materializer(db), partition, mend=True)


def _check_times(source: EntityDefinition[Any], copy: EntityDefinition[Any], mine: str, theirs: str) -> None:
    """Refuse a time with another format than in the source's key, such as by days instead of by seconds."""
    [own] = _formats(copy.partition, mine)
    formats = {*_formats(source.partition, theirs), *_formats(source.sort, theirs)}
    exact = {""} if "" in formats else formats
    if exact != {own} and any("%" in each for each in (own, *exact)):
        raise DeclarationError(
            copy.name,
            f"its partition {copy.partition.text!r} must format {mine} as the key of {source.name} formats {theirs}, "
            "because otherwise one partition could have the copies of two sources",
        )


def _formats(template: KeyTemplate, name: str) -> list[str]:
    return [part.spec for part in template.parts if isinstance(part, TemplateField) and part.name == name]
