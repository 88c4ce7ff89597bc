"""The items of one entity, as people call them: by keywords, mappings, or items that were read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Collection as Names
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Generic, Never, NoReturn, TypeVar, overload

from dynashard import reads
from dynashard.arguments import (
    check_flag,
    check_item,
    check_revision,
    check_values,
    item_named,
    key_named,
    names_of,
    refuse_more,
    several,
    unique_named,
    updates_named,
)
from dynashard.cures import hint
from dynashard.entity import Entity, EntityDefinition
from dynashard.errors import (
    DynashardError,
    InvalidCursorError,
    InvalidKeyError,
    InvalidQueryError,
    InvalidValueError,
    NotFoundError,
)
from dynashard.repository import Companion, KeyLike, Store, Written
from dynashard.repository.key_names import not_found
from dynashard.repository.left_out import Found
from dynashard.repository.out_of_line import repository_of
from dynashard.repository.projection import Part

if TYPE_CHECKING:
    from dynashard.entity.uniqueness import UniqueDefinition
    from dynashard.repository.batches import Outcome
    from dynashard.repository.unique_reads import UniqueReads

    _Outcomes = list[Outcome]

E = TypeVar("E", bound=Entity)
FieldNames = list[str] | tuple[str, ...]
"""Names of fields. Not any sequence: of `**options` that hold texts, type checkers would take one for `fields`."""
Row = dict[str, Any]

OTHER_NAMES: Final = {
    "add": "create", "all": "items", "batch": "batch_get", "fetch": "get", "filter": "list", "find_one": "find",
    "first": "list(..., limit=1)", "get_many": "batch_get", "get_or_create": "find, then create", "insert": "create",
    "iter": "items", "load": "get", "query": "list", "read": "get", "remove": "delete", "save": "put", "search": "list",
    "update_or_create": "put", "upsert": "put", "where": "list",
    **dict.fromkeys(("batch_create", "batch_put", "bulk_create", "create_many", "put_many"), "batch_write"),
    **dict.fromkeys(("batch_delete", "bulk_delete", "delete_many"), "batch_write(delete=[...])"),
}  # fmt: skip
"""What other libraries call our methods."""


class Collection(Generic[E]):
    """The items of one entity: single items, batches and listings.

    A key is given by keywords, `get(tenant_id="abc", id="ada")`, as the value of the field that keywords leave open,
    `get("ada", tenant_id="abc")`, as a mapping, or as an item. An item is given itself or by its fields. A field with
    the name of an argument, such as `order`, is given in a mapping.

    A collection understands what callers type, and leaves the work to its parts: single items to the repository of the
    entity, many at a time to the repository's `batches`, and listings to `listing`.
    """

    def __init__(self, store: Store, cursors: "reads.CursorCodec", model: type[E], *others: type[E]) -> None:
        self._repository = repository_of(store, model)
        self._entity = self._repository.entity
        self._store = store
        self._open: Callable[[], reads.Listing[E]] = lambda: reads.Listing(store, cursors, model, *others)

    @cached_property
    def listing(self) -> "reads.Listing[E]":
        """What reads the listings; for packages that do more than collections do."""
        return self._open()

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration."""
        return self._entity

    def check(
        self, item: E | Mapping[str, Any] | None = None, /, *more: Never, timely: bool = True, **fields: Any
    ) -> None:
        """Raise the `InputError` that storing this item would raise before anything is sent; see `Repository.check`."""
        if fields or more or item.__class__ is not self._entity.model:
            item = item_named(self._entity, "check", item, fields, more)
        check_flag("timely", timely)
        self._repository.check(item, timely=timely)

    def create(
        self, item: E | Mapping[str, Any] | None = None, /, *more: Never, handling: str | None = None, **fields: Any
    ) -> E:
        """Store an item under a key that has no live item; see `Repository.create`."""
        if fields or more or item.__class__ is not self._entity.model:
            item = item_named(self._entity, "create", item, fields, more)
        return self._repository.create(item, handling=handling)

    @property
    def can_create_with(self) -> bool:
        """Whether `create_with` can be used: items have one home, and no attachments."""
        return self._repository.can_create_with

    def create_with(self, item: E, companion: Companion) -> E:
        """Store an item in one transaction with an action on another table; see `Repository.create_with`."""
        return self._repository.create_with(item, companion)

    def confirm_created(self, key: KeyLike, revision: str, shards: int) -> bool:
        """Whether readers find what a create stored; see `Repository.confirm_created`."""
        return self._repository.confirm_created(key, revision, shards)

    def put(
        self,
        item: E | Mapping[str, Any] | None = None,
        /,
        *more: Never,
        if_match: str | None = None,
        handling: str | None = None,
        over: E | None = None,
        **fields: Any,
    ) -> Written[E]:
        """Store an item, whether or not its key had one; see `Repository.put`."""
        if fields or more or item.__class__ is not self._entity.model:
            item = item_named(self._entity, "put", item, fields, more)
        if if_match is not None:
            check_revision(if_match)
        if over is not None:
            check_item("over", over)
        return self._repository.put(item, if_match=if_match, handling=handling, over=over)

    def replace(
        self,
        item: E | Mapping[str, Any] | None = None,
        /,
        *more: Never,
        if_match: str | None = None,
        handling: str | None = None,
        over: E | None = None,
        **fields: Any,
    ) -> E:
        """Do what `put` does, and return only the item as stored."""
        return self.put(item, *more, if_match=if_match, handling=handling, over=over, **fields).item

    def find(
        self, key: Any = None, /, *more: Never, consistent: bool = False, include: Sequence[str] = (), **fields: Any
    ) -> E | None:
        """Return the live item with this key, or None; see `Repository.find`.

        Keywords may name unique fields instead of the key, with those of what they are unique within, such as
        `find(tenant_id="abc", email="ada@x.org")`. That is always consistent.

        Cost by unique fields: 2 read units and 2 round trips; 1 and 1 if no item has the values.
        """
        if consistent is not False:
            check_flag("consistent", consistent)
        if fields and self._entity.unique and (named := self._unique_named(key, more, fields)):
            return self._find_unique(*named)
        if key.__class__ is not dict or fields or more:
            key = key_named(self._entity, "find", key, more, fields)
        if not consistent and not include:
            # Passing on defaults takes longer than asking for them.
            return self._repository.find(key)
        return self._repository.find(key, consistent=consistent, include=names_of("include", include))

    def get(
        self, key: Any = None, /, *more: Never, consistent: bool = False, include: Sequence[str] = (), **fields: Any
    ) -> E:
        """Return what `find` returns, at its cost; raises `NotFoundError` if there is no live item."""
        if consistent is not False:
            check_flag("consistent", consistent)
        if fields and self._entity.unique and (named := self._unique_named(key, more, fields)):
            return self._get_unique(*named)
        if key.__class__ is not dict or fields or more:
            key = key_named(self._entity, "get", key, more, fields)
        # As `Repository.get`, with one call less on the hot path.
        if consistent or include:
            item = self._repository.find(key, consistent=consistent, include=names_of("include", include))
        else:
            item = self._repository.find(key)
        if item is None:
            raise not_found(self._entity, key)
        return item

    def part(
        self, key: Any = None, /, *more: Never, fields: Sequence[str] = (), consistent: bool = False, **named: Any
    ) -> Part:
        """Return some fields of the live item with this key; see `Repository.part`."""
        if not fields:
            raise InvalidQueryError("part returns some fields; write part(..., fields=[...])", field="fields")
        if key.__class__ is not dict or named or more:
            key = key_named(self._entity, "part", key, more, named)
        check_flag("consistent", consistent)
        return self._repository.part(key, fields=names_of("fields", fields), consistent=consistent)

    def exists(self, key: Any = None, /, *more: Never, consistent: bool = False, **fields: Any) -> bool:
        """Whether a live item has this key. Costs what `find` costs: DynamoDB bills the whole item."""
        if consistent is not False:
            check_flag("consistent", consistent)
        if fields and self._entity.unique and (named := self._unique_named(key, more, fields)):
            return self._find_unique(*named) is not None
        if key.__class__ is not dict or fields or more:
            key = key_named(self._entity, "exists", key, more, fields)
        return self._repository.exists(key, consistent=consistent)

    def update(
        self,
        key: Any = None,
        updates: Mapping[str, Any] | None = None,
        /,
        *more: Never,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own word for it
        remove: Names[str] = (),
        add: Mapping[str, Any] | None = None,
        if_match: str | None = None,
        handling: str | None = None,
        **fields: Any,
    ) -> E:
        """Update some fields of a live item: `update(user, department="legal")`; see `Repository.update`.

        New values are given by keywords, in a mapping after the key, or in `set`.
        """
        check_revision(if_match)
        own, values = updates_named(self._entity, key, fields, updates, set)
        if key.__class__ is not dict or own or more:
            key = key_named(self._entity, "update", key, more, own)
        if remove != ():
            remove = names_of("remove", remove)
        if add is not None:
            check_values("add", add)
        elif not values and remove == () and isinstance(key, Entity):
            raise InvalidValueError(
                "update stores what it names, and not the item: write update(item, field=...), or put(item)"
            )
        return self._repository.update(key, set=values, remove=remove, add=add, if_match=if_match, handling=handling)

    def delete(
        self, key: Any = None, /, *more: Never, if_match: str | None = None, handling: str | None = None, **fields: Any
    ) -> None:
        """Delete a live item; see `Repository.delete`."""
        if key.__class__ is not dict or fields or more:
            key = key_named(self._entity, "delete", key, more, fields)
        if if_match is not None:
            check_revision(if_match)
        self._repository.delete(key, if_match=if_match, handling=handling)

    def batch_get(
        self, keys: Sequence[Any] = (), /, *more: Never, consistent: bool = False, strict: bool = False, **fields: Any
    ) -> Found[E]:
        """Return the live items with these keys; see `Batches.get`.

        Fields by keyword are those of all keys: `batch_get(["ada", "bob"], tenant_id="abc")`.
        """
        refuse_more("batch_get", more)
        check_flag("consistent", consistent)
        check_flag("strict", strict)
        asked = self._keys("batch_get", keys, fields)
        return self._repository.batches.get(asked, consistent=consistent, strict=strict)

    def batch_write(
        self,
        put: Sequence[E | Mapping[str, Any]] = (),
        *more: Never,
        delete: Sequence[Any] = (),
        whole: bool = False,
        **others: Never,
    ) -> None:
        """Store and delete many items; see `Batches.write`."""
        refuse_more("batch_write", more, others)
        check_flag("whole", whole)
        self._repository.batches.write(put=self._items(put), delete=self._keys("batch_write", delete, {}), whole=whole)

    def try_batch_write(
        self,
        put: Sequence[E | Mapping[str, Any]] = (),
        *more: Never,
        delete: Sequence[Any] = (),
        whole: bool = False,
        **others: Never,
    ) -> "_Outcomes":
        """Do what `batch_write` does; return an outcome for each; see `Batches.try_write`."""
        refuse_more("try_batch_write", more, others)
        check_flag("whole", whole)
        puts = [_tried(self._items, item) for item in several("put", put)]
        deletes = [_tried(partial(self._keys, "batch_write", fields={}), key) for key in several("delete", delete)]
        items, keys = ([each for each, error in some if error is None] for some in (puts, deletes))
        outcomes = iter(self._repository.batches.try_write(put=items, delete=keys, whole=whole))
        return [next(outcomes) if error is None else error for _, error in (*puts, *deletes)]

    @overload
    def list(
        self, partition: Any = None, *, cursor: str | None = None, fields: None = None, **arguments: Any
    ) -> "reads.Page[E]": ...
    @overload
    def list(
        self, partition: Any = None, *, cursor: str | None = None, fields: FieldNames, **arguments: Any
    ) -> "reads.Page[Row]": ...
    @overload
    def list(self, partition: Any = None, *, cursor: str | None = None, **arguments: Any) -> "reads.Page[Any]": ...
    def list(
        self, partition: Any = None, *more: Never, cursor: str | None = None, **arguments: Any
    ) -> "reads.Page[Any]":
        """Return one page of a logical partition, or of several, such as `list(tenant_id="abc", limit=100)`.

        Fields select what is listed: those of a partition, and perhaps the first fields of its sort key. If they are
        not those of the table and only one index takes them, they list that index.

        Args:
            partition: its fields as a mapping, those of the index if one is named; or a sequence of such, at most 100.
            more: further values, which are refused.
            cursor: that of the page before, with every other argument but `limit`, `fields`, `budget` and `consistent`
                as it was.
            arguments: those of `Query` from `index` on; `reverse=True` for the last items first, in order over all
                shards unless `order` says otherwise; and fields by keyword.

        Raises:
            InvalidQueryError, InvalidKeyError, InvalidValueError: with the argument at fault; nothing was sent.
            InvalidCursorError: the cursor is damaged, forged, or of another query.

        Cost: round-robin and shard order, 1 Query if one shard fills the page; ordered, a Query for each shard in
        each of at most 2 rounds. A Query costs 0.5 read units for every 4 KB it reads, 1 if consistent.
        Several partitions cost what all of their shards cost, in the same rounds.
        """
        return self.listing.page(self._query(partition, arguments, more), _cursor(cursor))

    @overload
    def pages(
        self, partition: Any = None, *, cursor: str | None = None, fields: None = None, **arguments: Any
    ) -> Iterator["reads.Page[E]"]: ...
    @overload
    def pages(
        self, partition: Any = None, *, cursor: str | None = None, fields: FieldNames, **arguments: Any
    ) -> Iterator["reads.Page[Row]"]: ...
    @overload
    def pages(
        self, partition: Any = None, *, cursor: str | None = None, **arguments: Any
    ) -> Iterator["reads.Page[Any]"]: ...
    def pages(
        self, partition: Any = None, *more: Never, cursor: str | None = None, **arguments: Any
    ) -> Iterator["reads.Page[Any]"]:
        """Return all pages, from a cursor or the start on; takes the arguments of `list`, and each costs as much."""
        return self.listing.pages(self._query(partition, arguments, more), _cursor(cursor))

    @overload
    def items(
        self, partition: Any = None, *, cursor: str | None = None, fields: None = None, **arguments: Any
    ) -> Iterator[E]: ...
    @overload
    def items(
        self, partition: Any = None, *, cursor: str | None = None, fields: FieldNames, **arguments: Any
    ) -> Iterator[Row]: ...
    @overload
    def items(self, partition: Any = None, *, cursor: str | None = None, **arguments: Any) -> Iterator[Any]: ...
    def items(self, partition: Any = None, *more: Never, cursor: str | None = None, **arguments: Any) -> Iterator[Any]:
        """Return every item of all pages, one after another; reads a page when its first item is needed.

        Takes the arguments of `list`, and costs what `pages` costs. `scan` reads faster, in no order.
        """
        pages = self.pages(partition, *more, cursor=cursor, **arguments)
        return (item for page in pages for item in page.items)

    @overload
    def scan(
        self, partition: Any = None, *, workers: int = 4, fields: None = None, **arguments: Any
    ) -> "reads.Scan[E]": ...
    @overload
    def scan(
        self, partition: Any = None, *, workers: int = 4, fields: FieldNames, **arguments: Any
    ) -> "reads.Scan[Row]": ...
    @overload
    def scan(self, partition: Any = None, *, workers: int = 4, **arguments: Any) -> "reads.Scan[Any]": ...
    def scan(self, partition: Any = None, *more: Never, workers: int = 4, **arguments: Any) -> "reads.Scan[Any]":
        """Stream all items, in no order between shards; several partitions follow one another.

        `undecodable` of what is returned grows by the stored items that do not fit the entity, which are left out.

        Args:
            partition: as of `list`.
            more: as of `list`.
            workers: how many shards are read at a time, 1 to 64.
            arguments: those of `list` that choose items: `index`, `prefix`, `start`, `end`, `filters`, `fields`,
                `consistent`, `strict`, and fields by keyword.

        Cost: 1 Query for every 1,000 items or 1 MB of a shard; memory for two answers a worker.
        """
        if "limit" in arguments:
            raise InvalidQueryError(f"a scan has no pages: write list(limit={arguments['limit']!r})", field="limit")
        return self.listing.scan(self._query(partition, arguments, more), workers=workers)

    def count(self, partition: Any = None, *more: Never, up_to: int | None = None, **arguments: Any) -> "reads.Counted":
        """Count the items; takes the arguments of `list` that choose items, and `distinct`.

        Returns a number, whose `undecodable` are the stored items that do not fit the entity and are not counted. With
        `up_to`, it is at most that number, and `exact` says whether it is all of them.

        Cost: what reading all of them costs; DynamoDB keeps no counts, and cannot judge whether an item fits.
        """
        if "limit" in arguments:
            raise InvalidQueryError(f"count has no pages: write up_to={arguments['limit']!r}", field="limit")
        if "distinct" in arguments:
            arguments.setdefault("order", reads.Order.ORDERED)
        return self.listing.count(self._query(partition, arguments, more), up_to=up_to)

    def shards(
        self, partition: Any = None, *more: Never, workers: int = 4, **fields: Any
    ) -> Sequence["reads.ShardLoad"]:
        """Return what each shard of a logical partition holds, in order: how evenly items are spread.

        While items move, these are the shards of both counts. Cost: what reading all of it costs.
        """
        return self.listing.shards(self._query(partition, fields, more), workers=workers)

    def _query(self, partition: Any, arguments: Mapping[str, Any], more: tuple[Any, ...]) -> "reads.Query":
        if more:
            named = ", ".join(f"{name}=..." for name in self._entity.partition.fields)
            raise InvalidQueryError(f"A listing takes one partition, and got {1 + len(more)} values; write {named}")
        return reads.query_of(self._entity, partition, arguments)

    def _unique_named(
        self, key: Any, more: tuple[Any, ...], fields: Mapping[str, Any]
    ) -> "tuple[UniqueDefinition, dict[str, Any]] | None":
        return unique_named(self._entity, fields) if key is None and not more else None

    @cached_property
    def unique(self) -> "UniqueReads[E]":
        """What looks items up by unique fields; for packages that do more than collections do."""
        from dynashard.repository.item_reads import ItemReads  # noqa: PLC0415 - few entities have unique fields
        from dynashard.repository.unique_reads import UniqueReads  # noqa: PLC0415 - as above

        return UniqueReads(self._store, ItemReads(self._store, self._entity.model))

    def _find_unique(self, unique: "UniqueDefinition", values: Mapping[str, Any]) -> E | None:
        stored = self.unique.find(unique, values)
        return None if stored is None else self._entity.decode(stored)

    def _get_unique(self, unique: "UniqueDefinition", values: Mapping[str, Any]) -> E:
        item = self._find_unique(unique, values)
        if item is None:
            named = ", ".join(f"{name}={values[name]!r}" for name in unique.ordered)
            raise NotFoundError(f"{self._entity.name} {named} does not exist")
        return item

    def _items(self, items: Any) -> Sequence[E]:
        model = self._entity.model
        many = several("put", items)
        return [item if item.__class__ is model else item_named(self._entity, "put", item, {}) for item in many]

    def _keys(self, verb: str, keys: Any, fields: Mapping[str, Any]) -> Sequence[Any]:
        many = several("delete" if verb == "batch_write" else verb, keys)
        if not many and fields:
            if fields.keys() >= set(self._entity.key_fields):
                raise InvalidKeyError(f"{verb} takes a list of keys before fields that all of them have: {verb}([...])")
            if unknown := {name: value for name, value in fields.items() if name not in self._entity.key_fields}:
                key_named(self._entity, verb, None, (), unknown)
        if not fields and all(key.__class__ is dict for key in many):
            return many
        return [key_named(self._entity, verb, key, (), fields) for key in many]

    if not TYPE_CHECKING:
        # Type checkers refuse these by themselves.
        def __getattr__(self, name: str) -> NoReturn:
            public = [] if name.startswith("_") else [each for each in dir(type(self)) if not each.startswith("_")]
            cure = f"; use {OTHER_NAMES[name]}" if name in OTHER_NAMES else hint(name, public)
            raise AttributeError(f"{type(self).__name__} has no attribute {name}{cure}", name=name, obj=self)

        def __getitem__(self, key: object) -> NoReturn:
            raise InvalidKeyError("A collection has no items by subscript; write get(...) with the fields of the key.")

        def __contains__(self, key: object) -> NoReturn:
            raise InvalidKeyError("A collection is not searched by `in`; write exists(...) with the fields of the key.")

        def __bool__(self) -> bool:
            return True

        def __len__(self) -> NoReturn:
            raise InvalidKeyError("A collection has no length as a whole; write count(...) with a partition.")

        def __iter__(self) -> NoReturn:
            raise InvalidKeyError("A collection is not iterable as a whole; write items(...) with a partition.")


def _tried(make: Callable[[Any], Sequence[Any]], given: Any) -> tuple[Any, DynashardError | None]:
    """Return what is made of one member of a batch, or the error that refuses it."""
    try:
        [made] = make([given])
    except DynashardError as error:
        return None, error
    return made, None


def _cursor(cursor: object) -> str | None:
    if cursor is None or isinstance(cursor, str):
        return cursor
    raise InvalidCursorError(f"cursor is a {type(cursor).__name__}; write cursor=page.cursor", field="cursor")
