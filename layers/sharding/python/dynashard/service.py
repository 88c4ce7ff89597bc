"""The layer's entry point: a `Dynashard` opens a `Collection` for each entity."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar, cast, overload

from dynashard import reads
from dynashard.collection import OTHER_NAMES, Collection
from dynashard.cures import checked, hint
from dynashard.cursor_keys import CursorKeys
from dynashard.entity import Entity, EntityDefinition
from dynashard.errors import ConfigurationError, InvalidQueryError, ThrottledError
from dynashard.key_clock import DEFAULT_BOUNDS, ClockBounds, KeyClock
from dynashard.repository import RetryPolicy, Store
from dynashard.repository.store import ExactlyOnce, Throttled, ignore_throttles
from dynashard.routing import Router
from dynashard.runtime import SYSTEM, Runtime
from dynashard.topology import DEFAULT_LEASE, DeclaredCounts, LeasedTopology, Topology
from dynashard.transport import connect
from dynashard.transport.clock_offset import clock_offset_of
from dynashard.transport.deadline import LONGEST_OPERATION
from dynashard.transport.interface import AwsSession, Transport

if TYPE_CHECKING:
    from dynashard.growth.opening import GrowthOptions, NoGrowth, OpenedGrowth, Tables
    from dynashard.growth.settings import GrowthMode
    from dynashard.locations import Location
    from dynashard.resharding import Resharder
    from dynashard.transactions import Step

__all__ = [
    "Collection",
    "Dynashard",
]

E = TypeVar("E", bound=Entity)
F = TypeVar("F", bound=Entity)


checks_arguments: Final = checked(
    "Dynashard",
    ConfigurationError,
    instead={"cursor_key": "cursor_keys=", "table_name": "table=", "topology_table_name": "topology_table="},
)
"""Refuses arguments that a `Dynashard` does not have, with the name that it has for them."""


class Dynashard:
    """Entities in one table. `Dynashard.local()` and `Dynashard.deployed("dev")` find the tables by themselves.

    Args:
        transport: the connection to DynamoDB, such as `dynashard.connect(...)`; or a `boto3.Session` for one with its
            credentials and region, which `close` closes.
        topology_table: the name of the table of shard counts. Counts change; only this table says where items are.
        topology: the source of shard counts instead of that table, such as `declared_counts(topology_table=None)`.
        cursor_keys: secrets that sign cursors, newest first, each of at least 16 bytes; or `CursorKeys`.
        lease: how long a view of the shard counts may be used, in seconds; the topology table may demand less.
        retry_policy: how long batches and scans retry throttled requests.
        throttled: called with each throttle that outlasted retries, in the caller's thread, before the error is raised;
            may not raise. Counts grow without it.
        growth: whether counts grow by throttles: `on`, `dry_run`, `off` or `GrowthOptions`. It needs `topology_table`.
        operation_seconds: how long one operation may take, with all of its requests and pauses; at most
            `TOPOLOGY_OPERATION_SECONDS` of the backend, for which resizes wait.
        clocks: how far the clocks of all processes of the tables may be off, for entities whose placement is `epochs`;
            that of the backend's `TOPOLOGY_CLOCK_SECONDS` and `TOPOLOGY_AHEAD_SECONDS`.

    Attributes:
        key_clock: how far this process's clock is off, as far as is known, and what that allows.
        store: the table and how to reach it, for packages that do more than collections do.
        tables: both tables, for what changes shard counts; None if `topology_table` was not given.

    Safe to share between threads; one for each process is enough.

    Raises:
        ConfigurationError: missing or short cursor keys; neither or both of `topology_table` and `topology`; an
            `operation_seconds` of 0 or less.
    """

    @checks_arguments
    def __init__(
        self,
        transport: Transport | AwsSession,
        *,
        table: str,
        cursor_keys: Sequence[str] | CursorKeys,
        topology_table: str | None = None,
        topology: Topology | DeclaredCounts | None = None,
        lease: float = DEFAULT_LEASE,
        runtime: Runtime = SYSTEM,
        retry_policy: RetryPolicy | None = None,
        throttled: Throttled = ignore_throttles,
        growth: "GrowthMode | GrowthOptions" = "on",
        operation_seconds: float = LONGEST_OPERATION,
        clocks: ClockBounds = DEFAULT_BOUNDS,
    ) -> None:
        self._owned: Transport | None = None
        if hasattr(transport, "get_credentials"):
            session = cast("AwsSession", transport)
            transport = self._owned = connect(session=session, operation_seconds=operation_seconds)
        _require_opened(transport, table)
        if topology_table == table:
            raise ConfigurationError(
                f"topology_table is {table!r}, as table is; name another one, which has other keys"
            )
        if isinstance(lease, bool) or not isinstance(lease, int | float):
            raise ConfigurationError(f"lease is {lease!r}; write a number of seconds, such as 30")
        self._growth: OpenedGrowth | NoGrowth | None = None
        self.tables: Tables | None = None
        if topology_table is not None or growth != "on":
            # A process whose counts others change does without.
            from dynashard.growth import opening  # noqa: PLC0415

            self._options = opening.options_of(growth)
        if topology_table is not None:
            if topology is not None:
                raise ConfigurationError("give topology_table= or topology=, not both")
            self.tables = opening.Tables(
                transport=transport,
                table=table,
                topology_table=topology_table,
                lease=lease,
                operation_seconds=operation_seconds,
                runtime=runtime,
                clocks=clocks,
            )
            self._growth = opening.open_growth(self.tables, self._options)
            topology = LeasedTopology(transport, topology_table, lease=lease, runtime=runtime)
        elif isinstance(topology, DeclaredCounts):
            topology_table = topology.topology_table
            topology = topology.over(transport, lease=lease, runtime=runtime)
        elif topology is None:
            raise ConfigurationError(
                'name the table of shard counts, topology_table="...": declared counts do not hold after a resize. '
                "For a table without one, say topology=declared_counts(topology_table=None)"
            )
        self._transport = transport
        self.key_clock = KeyClock(runtime.clock, clock_offset_of(transport), clocks)
        self._topology_table = topology_table
        grown = self._growth
        self.store = Store(
            transport if grown is None else grown.transport,
            table,
            Router(topology, self.key_clock),
            exactly_once=_transacted_writes,
            runtime=runtime,
            retry_policy=retry_policy or RetryPolicy(runtime=runtime),
            throttled=throttled if grown is None else _both(throttled, grown.throttled),
            operation_seconds=operation_seconds,
        )
        self.cursors = reads.CursorCodec(cursor_keys)
        self._collections: dict[tuple[type[Entity], ...], tuple[Store, Collection[Any]]] = {}

    @classmethod
    def local(cls, environ: Mapping[str, str] | None = None, **more: Any) -> Self:
        """Open the local stack, by the environment variables of `make run`.

        Args:
            environ: `DYNAMODB_PORT` (8001) or `DYNAMODB_ENDPOINT`, `DATA_DIR` (`.data` in the working folder),
                `TOPOLOGY_LEASE_SECONDS` (30), `TOPOLOGY_CLOCK_SECONDS` (5), `TOPOLOGY_AHEAD_SECONDS` (5); the variables
                of this process if None.
            more: `runtime`, `retry_policy`, `throttled` and `growth` of the constructor.

        Raises `ConfigurationError` if a variable cannot be used; the message names it. Cost: no request.
        """
        from dynashard.locations import local_stack  # noqa: PLC0415 - functions know their tables

        return cls._at(local_stack(os.environ if environ is None else environ), more)

    @classmethod
    def deployed(
        cls,
        environment: str,
        *,
        region: str | None = None,
        profile: str | None = None,
        session: AwsSession | None = None,
        **more: Any,
    ) -> Self:
        """Open the deployed environment with this name in cdk.json, by the outputs of its stacks.

        A region or profile of None is the SDK's own; `session` is a `boto3.Session` instead. `more` are `lease`,
        `runtime`, `retry_policy`, `throttled` and `growth` of the constructor.

        Raises `ConfigurationError` if the environment does not exist, cannot be read, or is of an older version.
        Cost: 1 DescribeStacks; 1 more and 1 GetSecretValue with the first cursor.
        """
        from dynashard.locations import deployed  # noqa: PLC0415 - as in `local`

        return cls._at(deployed(environment, region=region, profile=profile, session=session), more)

    @classmethod
    def _at(cls, here: "Location", more: Mapping[str, Any]) -> Self:
        from dynashard.growth.opening import GrowthOptions  # noqa: PLC0415 - as in the constructor

        # A worker of the backend carries resizes out.
        arguments: dict[str, Any] = {"growth": GrowthOptions(drives=False), **here, **more}
        opened = cls(**arguments)
        opened._owned = here["transport"]
        return opened

    def close(self) -> None:
        """End the thread of growth, and close the sockets and threads of `local` and `deployed`.

        A transport that was passed in stays open. A resize that is under way waits for the next
        driver. Takes at most about 3 seconds.
        """
        if self._growth is not None:
            self._growth.close()
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @overload
    def collection(self, model: type[E], /) -> "Collection[E]": ...
    @overload
    def collection(self, model: type[E], other: type[F], /) -> "Collection[E | F]": ...
    @overload
    def collection(self, model: type[E], /, *others: type[E]) -> "Collection[E]": ...
    def collection(self, model: type[E], /, *others: type[Any]) -> "Collection[Any]":
        """Return the collection of an entity's items.

        With other entities that share its logical partitions, listings return the items of all, each as its own
        class; everything else concerns the first.

        Calls with the same classes return the same collection, which threads may share.

        Raises `ConfigurationError` if one is not an entity class, `DeclarationError` if it declares no entity.
        """
        for each in (model, *others):
            if not (isinstance(each, type) and issubclass(each, Entity)):
                shown = repr(each) if isinstance(each, str) else f"a {type(each).__name__}"
                raise ConfigurationError(f"collection takes entity classes, as in db.collection(User); it got {shown}")
        # A collection learns how large items are, which listings need, so all calls share it.
        opened = self._collections.get((model, *others))
        if opened is None or opened[0] is not self.store:
            opened = self._collections[model, *others] = (
                self.store,
                Collection(self.store, self.cursors, model, *others),
            )
        return opened[1]

    if not TYPE_CHECKING:
        # Type checkers refuse unknown names by themselves.
        def __getattr__(self, name: str) -> NoReturn:
            cure = ""
            if not name.startswith("_"):
                near = hint(name, [each for each in dir(type(self)) if not each.startswith("_")])
                of_items = "; open the items of an entity with db.collection(User)"
                cure = of_items if hasattr(Collection, name) or name in OTHER_NAMES else near or of_items
            raise AttributeError(f"Dynashard has no attribute {name}{cure}", name=name, obj=self)

    def create_tables(self) -> list[str]:
        """Create the table of items and that of shard counts if they do not exist, and wait until they can be used.

        They have the keys, indexes, stream and TTL of the stacks' tables, and are billed on demand. Without
        `topology_table` only the table of items is created. Existing tables keep everything else that they have.

        Returns:
            The names of the tables that it has created, none if all existed.

        Raises:
            ConfigurationError: an existing table has other keys, lacks an index, or deletes items by another attribute.
            EngineUnavailableError: a table is not ready after five minutes. Call it again.

        Cost: 5 requests, which are free; some 10 seconds for new tables. The role needs `dynamodb:CreateTable`,
            `DescribeTable`, `DescribeTimeToLive` and `UpdateTimeToLive`.
        """
        from dynashard.tables import create_tables  # noqa: PLC0415 - most programs find their tables

        return create_tables(
            self._transport, table=self.store.table, topology_table=self._topology_table, runtime=self.store.runtime
        )

    def resharder(self) -> "Resharder":
        """Return what changes the shard counts of these tables: on request, or driven by `resharding.driver.drive`.

        It knows all entities that this process has declared, or those of `growth`, and moves items at the share of the
        growth settings. `dynashard reshard` does the same from the command line.

        Raises:
            ConfigurationError: `topology_table` was not given.

        Cost: no request.
        """
        if self.tables is None:
            raise ConfigurationError('there is no table of shard counts to change: give topology_table="..."')
        return self.tables.resharder(self._options)

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
        from dynashard.transactions import Step, Transaction  # noqa: PLC0415 - reads need none of it

        for each in steps:
            if not isinstance(each, Step):
                cure = "write transact(Create(...), Update(...))"
                raise InvalidQueryError(f"transact takes steps; it got a {type(each).__name__}; {cure}")
        return Transaction(self.store, steps).run()


def _transacted_writes(store: Store) -> ExactlyOnce:
    from dynashard.transactions.single_writes import TransactedWrites  # noqa: PLC0415 - other writes need none of it

    return TransactedWrites(store)


def _require_opened(transport: object, table: object) -> None:
    if not callable(getattr(transport, "call", None)):
        given = repr(transport) if isinstance(transport, str | None) else f"a {type(transport).__name__}"
        raise ConfigurationError(f"Dynashard takes a connection, as in Dynashard(connect(...), ...); it got {given}")
    if not isinstance(table, str) or not table:
        raise ConfigurationError(f'table is {table!r}; write its name, table="..."')


def _both(first: Throttled, second: Throttled) -> Throttled:
    if first is ignore_throttles:
        return second

    def reported(entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        first(entity, partition, error)
        second(entity, partition, error)

    return reported
