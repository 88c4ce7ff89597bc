"""The parts of an entity's declaration: `Key`, `Shards`, `Index`, `Retention`, and the fields the layer fills in."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from ksuid import Ksuid
from pydantic import Field

from dynashard.cures import with_example
from dynashard.errors import DeclarationError
from dynashard.placement import (
    CALCULATED,
    EPOCHS,
    MAX_PARTS,
    PARTS,
    PLACEMENTS,
    UNSHARDED,
    Placement,
    is_power_of_two,
)
from dynashard.schema import INDEX_SLOTS, MAX_ATTACHMENT_BYTES, MAX_SHARDS

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, ValidationInfo
    from pydantic_core import CoreSchema

DEFAULT_SEPARATOR: Final = ":"
NAME_EXAMPLE: Final = 'name="user.v1.User"'
SHARDS_EXAMPLE: Final = "Shards(16), or Shards(start=1, max=256)"
KEY_EXAMPLE: Final = 'Key(partition="{tenant_id}", sort="{id}")'
INDEX_EXAMPLE: Final = 'Index("GSI1", "by_email", partition="{tenant_id}", sort="{email}")'
UNIQUE_EXAMPLE: Final = 'unique=("email",) or unique=(Unique(("team_id", "number")),)'

_ABSENT: Final[Any] = None


class WrongDeclarationError(ValueError):
    """A part of a declaration is wrong; becomes a `DeclarationError` with the entity's name."""


def refuse(problems: Iterable[str]) -> None:
    """Raise `WrongDeclarationError` for the first problem, if there is one."""
    for problem in problems:
        raise WrongDeclarationError(problem)


@with_example(KEY_EXAMPLE, DeclarationError)
@dataclass(frozen=True, slots=True)
class Key:
    """Where an entity's items live.

    Attributes:
        partition: template of the logical partition, such as `{tenant_id}`. Its values may not be empty or
            contain `:`.
        sort: template of the sort key, such as `{id}`; None for one item a partition (never sharded).
        prefix: first part of the partition key; the entity's name if None. Entities with one prefix share their
            logical partitions.
        separator: the text between prefix, partition and shard. Use another one than `:` only to adopt published keys
            such as `path_6`: the prefix must then be empty.
        unpadded: int fields of `sort` whose digits have no fixed width, because keys are already stored without one.
            They are listed as text: 10 before 9.
    """

    partition: str
    sort: str | None = None
    prefix: str | None = None
    separator: str = DEFAULT_SEPARATOR
    unpadded: Sequence[str] = ()


@with_example(SHARDS_EXAMPLE, DeclarationError)
@dataclass(frozen=True, slots=True)
class Shards:
    """How many stored partition keys a logical partition is spread over.

        Shards(16)                                          # 16 from the start
        Shards(start=1, max=256, placement="epochs")        # grows at once; sort keys begin with their time
        Shards(start=1, max=256, placement="random")        # grows by itself; items are only ever added
        Shards(16, adopt="unsharded")                       # for a table that was written without shards

    Attributes:
        count: a power of two from 1 to 1024; any count up to 1024 with the modulo placement.
        placement: `calculated` (xxh64: a key has one home, and counts can resize), `epochs` (the same, by a count
            that holds for a stretch of key time: counts grow within one wait, because nothing moves; sort keys must
            begin with their time), `modulo` (md5, as AWS published it; counts never resize) or `random`, for items that
            are only ever added, such as events. Random counts double within one wait, because nothing moves, but a key
            has no home: a read by key, and with it every update of a single item, looks into all shards. `parts` is for
            the parts of one value, as `dynashard_patterns.Counter` declares it: the sort key is the number of the
            shard, and counts only grow.
        max: the ceiling of automatic growth: a power of two from `count` to 1024.
        adopt: `unsharded` if the items of the table are stored under the bare partition key, until they are resharded
            to `count`; for the placements calculated and epochs.
        read_replicas: how many copies of the items, in index slots from the last one down, share reading with the
            table: listings that need not be consistent. Each costs what an index costs. Items that were written before
            the copy was declared are not in it: docs/replicas.md says how to add one.
        start: another name of `count`, for counts that are expected to grow. Give one of both.
    """

    count: int = _ABSENT
    placement: str = CALCULATED.name
    max: int = MAX_SHARDS
    adopt: Literal["unsharded"] | None = None
    read_replicas: int = 0
    start: InitVar[int | None] = None

    def __post_init__(self, start: int | None) -> None:
        if (start is None) == (self.count is _ABSENT):
            reason = f"shards need one number, as count or as start; write {SHARDS_EXAMPLE}"
            raise DeclarationError("Shards", reason)
        if start is not None:
            object.__setattr__(self, "count", start)

    def problems(self) -> Iterator[str]:
        """Yield the problems of the values, as sentences."""
        if not isinstance(self.placement, str) or self.placement not in PLACEMENTS:
            cure = f": write max={self.placement!r}" if _is_count(self.placement) else ""
            yield f"placement is {self.placement!r}; it must be one of {', '.join(sorted(PLACEMENTS))}{cure}"
        if not _is_count(self.count):
            yield f"the shard count is {self.count!r}; it must be a number from 1 to {MAX_SHARDS}, such as Shards(16)"
        yield from self._count_problems()
        if isinstance(self.read_replicas, bool) or self.read_replicas not in range(len(INDEX_SLOTS) + 1):
            yield f"read_replicas is {self.read_replicas!r}; there are {len(INDEX_SLOTS)} index slots"
        if self.adopt is not None:
            yield from self._adoption_problems()

    def _count_problems(self) -> Iterator[str]:
        if not self.rule.powers_of_two:
            if self.max != MAX_SHARDS:
                yield f"max is {self.max!r}, but counts of {self.placement} placement never change: leave it out"
            return
        if not is_power_of_two(self.count):
            low = 1 << self.count.bit_length() - 1
            advice = f"write Shards({low}) or Shards({2 * low})"
            yield f"the shard count is {self.count}; it must be a power of two: {advice}"
        if not _is_count(self.max) or not is_power_of_two(self.max):
            yield f"max is {self.max!r}; it must be a power of two up to {MAX_SHARDS}, such as 256"
        if self.rule is PARTS and self.max > MAX_PARTS:
            yield f"max is {self.max}; a value has at most {MAX_PARTS} parts: write max={MAX_PARTS} or less"
        if self.max < self.count:
            yield f"max is {self.max}; it must not be less than the shard count, {self.count}"

    def _adoption_problems(self) -> Iterator[str]:
        if self.adopt != "unsharded":
            yield f"adopt is {self.adopt!r}; it must be 'unsharded'"
        if self.rule not in (CALCULATED, EPOCHS):
            yield f"adopt needs calculated or epochs placement, not {self.placement}"
        if self.read_replicas:
            yield "adopt and read_replicas cannot be combined, because replicas lack adopted items: adopt first"

    @property
    def initial(self) -> int:
        """The count of logical partitions whose count was never changed; `UNSHARDED` for data to be adopted."""
        return UNSHARDED if self.adopt else self.count

    @property
    def rule(self) -> Placement:
        """The placement itself."""
        return PLACEMENTS[self.placement]


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MAX_SHARDS


@with_example(INDEX_EXAMPLE, DeclarationError)
@dataclass(frozen=True, slots=True)
class Index:
    """Another order in which to list an entity's items: one of the table's global secondary indexes.

    The index holds an item if all fields of both templates are set (not None).

    Attributes:
        slot: `GSI1`, `GSI2` or `GSI3`.
        name: the name that callers use, such as `by_email`.
        partition: template of the index's logical partition.
        sort: template of its sort key. Entries may have equal keys.
        shards: the index's own count, which grows by itself up to its `max`; None for an unsharded index. Entities
            that share logical partitions declare the same shards for a slot that they share.
        shard_by: `item_key` spreads entries by the hash of the item's key, so that entries with equal index keys
            still spread; `index_key` hashes the index's own keys (the published generator's rule).
        prefix: first part of the index partition key; the table key's prefix if None.
        unpadded: as in `Key`.
        backfill: whether items may have been stored before the index was declared. Then its listings say that they may
            be incomplete until `dynashard index build` has written the missing entries.
    """

    slot: str
    name: str
    partition: str
    sort: str
    shards: Shards | None = None
    shard_by: Literal["item_key", "index_key"] = "item_key"
    prefix: str | None = None
    unpadded: Sequence[str] = ()
    backfill: bool = False

    def problems(self) -> Iterator[str]:
        """Yield the problems of the values, as sentences."""
        if self.slot not in INDEX_SLOTS:
            yield (
                f"index {self.name}: slot is {self.slot!r}; it must be one of {', '.join(INDEX_SLOTS)}: "
                f'write Index("GSI1", "by_email", ...)'
            )
        if not self.name.isidentifier():
            yield f"index name is {self.name!r}; it must be an identifier, such as by_email"
        if self.shard_by not in ("item_key", "index_key"):
            yield f"index {self.name}: shard_by is {self.shard_by!r}; it must be 'item_key' or 'index_key'"
        if self.shards is not None:
            yield from self.shards.problems()
            if self.shards.rule is not CALCULATED:
                yield f"index {self.name}: placement is {self.shards.placement!r}; indexes need 'calculated'"
            if self.shards.read_replicas:
                yield f"index {self.name}: read replicas are copies of the table, not of an index"
            if self.shards.adopt:
                yield (
                    f"index {self.name}: indexes are not adopted. Leave its shards out to list entries that are stored "
                    "under the bare index key"
                )


@with_example('Unique("email", within="{tenant_id}")', DeclarationError)
@dataclass(frozen=True, slots=True)
class Unique:
    """Fields whose values together no two live items may have.

    An item of which one of these fields, or a field of `within`, is None may have the same values as others. Values are
    compared as they are stored, to the letter: let a validator of the field normalise what should be equal.

    Attributes:
        fields: the name of the field, or the names of several that are unique together.
        within: template of what the values are unique within, such as `{tenant_id}`; the template of the logical
            partition if None, and the whole table if empty.
        building: whether items may be stored that were written before the fields were declared unique, so that a
            look-up by the fields is not possible yet. Remove it after `dynashard unique build`.
    """

    fields: str | Sequence[str]
    within: str | None = None
    building: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return (self.fields,) if isinstance(self.fields, str) else tuple(self.fields)


@dataclass(frozen=True, slots=True)
class Retention:
    """Counts an item's expiry from a time of the item, which says when it happened.

        class Ping(Entity, ..., expires="expires_at"):
            at: datetime
            expires_at: Annotated[datetime | None, Retention("at", months=3), Field(validate_default=True)] = None

    An item may name an earlier expiry. A later one is lowered.

    Args:
        after: the field with the time, declared above the expiry.
        days: it expires so many days after that time, to the second.
        months: it expires when so many calendar months in UTC have passed after the month of that time; 0 is the end of
            that month. So the items of a month expire all in the same second.
    """

    after: str
    days: int | None = None
    months: int | None = None

    def until(self, at: datetime) -> datetime:
        """Return when an item of this time expires, in UTC.

        Raises:
            ValueError: the time has no zone, or it or the expiry is not in the years 1 to 9999 in UTC.
        """
        if at.tzinfo is None:
            raise ValueError(f"{self.after} has no zone, so nothing can be counted from it: write one, such as Z")
        try:
            begins = at.astimezone(UTC).replace(microsecond=0)
            if self.months is None:
                return begins + timedelta(days=self.days or 0)
            years, month = divmod(begins.month + self.months, 12)
            return datetime(begins.year + years, month + 1, 1, tzinfo=UTC)
        except (OverflowError, ValueError) as error:
            raise ValueError(f"{self.after} is {at}, and what is kept so long after it would never expire") from error

    def __get_pydantic_core_schema__(self, source: object, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema  # noqa: PLC0415 - pydantic has it by now

        return core_schema.with_info_after_validator_function(self._lowered, handler(source))

    def _lowered(self, expires: datetime | None, info: "ValidationInfo") -> datetime | None:
        at = info.data.get(self.after)
        if at is None:
            # It is not valid, which is what the caller learns, or it is optional and missing.
            return expires
        last = self.until(at)
        if expires is None:
            return last
        if expires.tzinfo is None:
            raise ValueError("the time has no zone: write one, such as Z")
        return min(expires, last)


@dataclass(frozen=True, slots=True)
class OutOfLine:
    """Marks a field that is stored out of line: it is in no listing, no index and no request for the item alone.

    The package that stores such a field derives `StoredOutOfLine` from it, as `dynashard_patterns.Attachment` does.
    `max_bytes` is the most it may hold, written as JSON.
    """

    max_bytes: int = MAX_ATTACHMENT_BYTES


id_time: Callable[[], datetime] | None = None
"""Returns the time of new ids; the present one if None. A sandbox of tests, whose time jumps, sets it."""


def fresh_id() -> str:
    """Return a new KSUID."""
    return str(Ksuid(id_time and id_time()))


def new_id() -> Any:
    """A field that fills itself with a KSUID: 27 characters, ordered by time to the second.

    Declare it as `id: str = new_id()`.
    """
    return Field(default_factory=fresh_id, min_length=1)


stamp_created: Final = partial(lambda: datetime.now(UTC))
"""Default of `created_at()` until the repository sets it. Pydantic would parse the signature of `now` itself."""
stamp_updated: Final = partial(lambda: datetime.now(UTC))
"""Default of `updated_at()` until the repository sets it."""


def created_at() -> Any:
    """Declare the field with the time at which an item was created, which the repository sets.

    Write `created_at: datetime = created_at()`. Replacing the item keeps the time; this reads the item first
    if the caller has not.
    """
    return Field(default_factory=stamp_created, json_schema_extra={"readOnly": True})


def updated_at() -> Any:
    """Declare the field with the time of the last write, which the repository sets.

    Write `updated_at: datetime = updated_at()`.
    """
    return Field(default_factory=stamp_updated, json_schema_extra={"readOnly": True})
