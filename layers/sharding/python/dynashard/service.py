"""The layer's entry point: a `Dynashard` has a `Collection` for each entity."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from dynashard import reads
from dynashard.cursor_keys import CursorKeys
from dynashard.entity import Entity, definition
from dynashard.errors import ConfigurationError
from dynashard.repository import Repository, RetryPolicy, Store
from dynashard.repository.store import Throttled, ignore_throttles
from dynashard.routing import Router
from dynashard.runtime import SYSTEM, Runtime
from dynashard.topology import DEFAULT_LEASE, DeclaredCounts, LeasedTopology, Topology
from dynashard.transport.deadline import LONGEST_OPERATION
from dynashard.transport.interface import Transport

if TYPE_CHECKING:
    from dynashard.locations import Location
    from dynashard.repository import Step

E = TypeVar("E", bound=Entity)


class Dynashard:
    """Entities in one table. `Dynashard.local()` and `Dynashard.deployed("dev")` find the tables by themselves.

    Args:
        transport: the connection to DynamoDB, such as `dynashard.transport.connect(...)`.
        topology_table: the name of the table of shard counts. Counts change; only this table says where items are.
        topology: the source of shard counts instead of that table, such as `declared_counts(topology_table=None)`.
        cursor_keys: secrets that sign cursors, newest first, each of at least 16 bytes; or `CursorKeys`.
        lease: how long a view of the shard counts may be used, in seconds; the topology table may demand less.
        retry_policy: how long batches and scans retry throttled requests.
        throttled: called with each throttle that outlasted retries, in the caller's thread, before the error is raised;
            may not raise. `dynashard_serving.growth.requests.growth_of(...).throttled` makes counts grow by it.
        operation_seconds: how long one operation may take, with all of its requests and pauses; at most
            `TOPOLOGY_OPERATION_SECONDS` of the backend, for which changes of shard counts wait.

    Attributes:
        store: the table and how to reach it, for packages that do more than collections do.

    Safe to share between threads; one for each process is enough.

    Raises:
        ConfigurationError: missing or short cursor keys; neither or both of `topology_table` and `topology`; an
            `operation_seconds` of 0 or less.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        table: str,
        cursor_keys: Sequence[str] | CursorKeys,
        topology_table: str | None = None,
        topology: Topology | DeclaredCounts | None = None,
        lease: float = DEFAULT_LEASE,
        runtime: Runtime = SYSTEM,
        retry_policy: RetryPolicy | None = None,
        throttled: Throttled = ignore_throttles,
        operation_seconds: float = LONGEST_OPERATION,
    ) -> None:
        if topology_table is not None:
            if topology is not None:
                raise ConfigurationError("give topology_table= or topology=, not both")
            topology = LeasedTopology(transport, topology_table, lease=lease, runtime=runtime)
        elif isinstance(topology, DeclaredCounts):
            topology = topology.over(transport, lease=lease, runtime=runtime)
        elif topology is None:
            raise ConfigurationError(
                'name the table of shard counts, topology_table="...": declared counts do not hold after a change. '
                "For a table without one, say topology=declared_counts(topology_table=None)"
            )
        self._owned: Transport | None = None
        self.store = Store(
            transport,
            table,
            Router(topology),
            runtime=runtime,
            retry_policy=retry_policy or RetryPolicy(runtime=runtime),
            throttled=throttled,
            operation_seconds=operation_seconds,
        )
        self.cursors = reads.CursorCodec(cursor_keys)

    @classmethod
    def local(cls, environ: Mapping[str, str] | None = None, **more: Any) -> Self:
        """Open the local stack, by the environment variables of `make run`.

        Args:
            environ: `DYNAMODB_PORT` (8001) or `DYNAMODB_ENDPOINT`, `DATA_DIR` (`.data` in the working folder),
                `TOPOLOGY_LEASE_SECONDS` (30); the variables of this process if None.
            more: `runtime`, `retry_policy` and `throttled` of the constructor.

        Raises `ConfigurationError` if a variable cannot be used; the message names it. Cost: no request.
        """
        from dynashard.locations import local_stack  # noqa: PLC0415 - functions know their tables

        return cls._at(local_stack(os.environ if environ is None else environ), more)

    @classmethod
    def deployed(cls, environment: str, *, region: str | None = None, profile: str | None = None, **more: Any) -> Self:
        """Open the deployed environment with this name in cdk.json, by the outputs of its stacks.

        A region or profile of None is the SDK's own. `more` are `lease`, `runtime`, `retry_policy` and `throttled` of
        the constructor.

        Raises `ConfigurationError` if the environment does not exist, cannot be read, or is of an older version.
        Cost: 1 DescribeStacks; 1 more and 1 GetSecretValue with the first cursor.
        """
        from dynashard.locations import deployed  # noqa: PLC0415 - as in `local`

        return cls._at(deployed(environment, region=region, profile=profile), more)

    @classmethod
    def _at(cls, here: "Location", more: Mapping[str, Any]) -> Self:
        arguments: dict[str, Any] = {**here, **more}
        opened = cls(**arguments)
        opened._owned = here["transport"]
        return opened

    def close(self) -> None:
        """Close the sockets and threads of `local` and `deployed`. A transport that was passed in stays open."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def collection(self, model: type[E], *others: type[E]) -> "Collection[E]":
        """Return the collection of an entity's items.

        With other entities that share its logical partitions, listings return the items of all, each as its own
        class; everything else concerns the first.
        """
        attachment = next(iter(definition(model).attachments.values()), None)
        kind: type[Collection[E]] = Collection if attachment is None else attachment.collection()
        return kind(self.store, self.cursors, model, *others)

    def transact(self, *steps: "Step") -> list[Entity | None]:
        """Do all steps atomically or none, on items of any entities and shards.

        Correct while shard counts change. A step is written once, even if its request is sent again. The call waits for
        other transactions and moves of the same items.

        Args:
            steps: `Create`, `Put`, `Update`, `Delete` and `Check`, each about another item, and at most 100 stored
                writes in all; 50 steps always fit, even while shard counts change.

        Returns:
            For each step the item as stored, if the step was a whole item; else None.

        Raises:
            TransactionRefusedError: a step's precondition does not hold; with its number and the reason.
            InvalidQueryError: too many steps, or an entity with random placement.
            InvalidKeyError, InvalidValueError, ItemTooLargeError: as of `Collection`; nothing was sent.
            TransactionConflictError: other writes or moves were in the way for as long as the retry policy allows.
            ThrottledError: DynamoDB throttled it several times.
            EngineUnavailableError: no answer came; it may have been done.

        Cost: 2 write units a step and KB, also for a `Check`; 4 for a create while its key moves. 1 round trip, and 1
        more each time it meets a move; a read first for each step that `Collection` would read first.
        """
        from dynashard.repository.transaction_run import Transaction  # noqa: PLC0415 - reads need none of it

        return Transaction(self.store, steps).run()


class Collection(Repository[E]):
    """The items of one entity: single items, batches and listings."""

    def __init__(self, store: Store, cursors: "reads.CursorCodec", model: type[E], *others: type[E]) -> None:
        super().__init__(store, model)
        self._open: Callable[[], reads.Listing[E]] = lambda: reads.Listing(store, cursors, model, *others)

    @cached_property
    def listing(self) -> "reads.Listing[E]":
        """What reads the listings; for packages that do more than collections do."""
        return self._open()

    def list(
        self, partition: "reads.Partitions", *, cursor: str | None = None, **arguments: Unpack["reads.QueryArguments"]
    ) -> "reads.Page[Any]":
        """Return one page of a logical partition, or of several, such as `list({"tenant_id": "abc"}, limit=100)`.

        Args:
            partition: its fields, those of the index if one is named; or a sequence of such, at most 100.
            cursor: that of the page before, with every other argument but `limit`, `fields`, `budget` and `consistent`
                as it was.
            arguments: those of `Query` from `index` on.

        Raises:
            InvalidQueryError, InvalidKeyError, InvalidValueError: with the argument at fault; nothing was sent.
            InvalidCursorError: the cursor is damaged, forged, or of another query.

        Cost: round-robin and shard order, 1 Query if one shard fills the page; ordered, a Query for each shard in
        each of at most 2 rounds. A Query costs 0.5 read units for every 4 KB it reads, 1 if consistent.
        Several partitions cost what all of their shards cost, in the same rounds.
        """
        return self.listing.page(reads.Query(self.entity, partition, **arguments), cursor)

    def pages(
        self, partition: "reads.Partitions", *, cursor: str | None = None, **arguments: Unpack["reads.QueryArguments"]
    ) -> Iterator["reads.Page[Any]"]:
        """Return all pages, from a cursor or the start on; takes the arguments of `list`, and each costs as much."""
        return self.listing.pages(reads.Query(self.entity, partition, **arguments), cursor)

    def scan(
        self, partition: "reads.Partitions", *, workers: int = 4, **arguments: Unpack["reads.QueryArguments"]
    ) -> "reads.Scan[E]":
        """Stream all items, in no order between shards; several partitions follow one another.

        `undecodable` of what is returned grows by the stored items that do not fit the entity, which are left out.

        Args:
            partition: as of `list`.
            workers: how many shards are read at a time, 1 to 64.
            arguments: those of `Query` that choose items: `index`, `prefix`, `start`, `end`, `filters`, `fields`,
                `consistent`, `strict`.

        Cost: 1 Query for every 1,000 items or 1 MB of a shard; memory for two answers a worker.
        """
        return self.listing.scan(reads.Query(self.entity, partition, **arguments), workers=workers)

    def count(self, partition: "reads.Partitions", **arguments: Unpack["reads.QueryArguments"]) -> "reads.Counted":
        """Count the items; takes the arguments of `Query` that choose items, and `distinct`.

        Returns a number, whose `undecodable` are the stored items that do not fit the entity and are not counted.

        Cost: what reading all of them costs; DynamoDB keeps no counts, and cannot judge whether an item fits.
        """
        if "distinct" in arguments:
            arguments.setdefault("order", reads.Order.ORDERED)
        return self.listing.count(reads.Query(self.entity, partition, **arguments))

    def shards(self, partition: Mapping[str, Any], *, workers: int = 4) -> Sequence["reads.ShardLoad"]:
        """Return what each shard of a logical partition holds, in order: how evenly items are spread.

        While items move, these are the shards of both counts. Cost: what reading all of it costs.
        """
        return self.listing.shards(reads.Query(self.entity, partition), workers=workers)
