"""The layer's entry point for programs on asyncio: an `AsyncDynashard` opens an `AsyncCollection` for each entity."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self, TypeVar, overload

from dynashard.awaiting.bridge import require_greenlet, run
from dynashard.awaiting.collection import AsyncCollection
from dynashard.cursor_keys import CursorKeys
from dynashard.entity import Entity
from dynashard.errors import InvalidQueryError
from dynashard.key_clock import DEFAULT_BOUNDS, ClockBounds
from dynashard.repository import RetryPolicy
from dynashard.repository.store import Throttled, ignore_throttles
from dynashard.runtime import SYSTEM, Runtime
from dynashard.service import Dynashard, checks_arguments
from dynashard.topology import DEFAULT_LEASE, DeclaredCounts, Topology
from dynashard.transport.deadline import LONGEST_OPERATION
from dynashard.transport.interface import AwsSession, Transport

if TYPE_CHECKING:
    from dynashard.growth.opening import GrowthOptions
    from dynashard.growth.settings import GrowthMode
    from dynashard.transactions import Step

E = TypeVar("E", bound=Entity)
F = TypeVar("F", bound=Entity)
P = ParamSpec("P")
T = TypeVar("T")


class AsyncDynashard:
    """Entities in one table, for programs on asyncio: `Dynashard` with `await`.

        async with AsyncDynashard.local() as db:
            users = db.collection(User)
            ada = await users.get("ada", tenant_id="abc")

    Arguments, results, errors and costs are those of `Dynashard`. Every task of every event loop of the process may
    share it: connections belong to the loop that has opened them. No call blocks its loop.

    Attributes:
        sync: the `Dynashard` whose methods these are. Its methods block, except in functions that `run` runs.

    Raises `ConfigurationError` if greenlet is not installed, and as `Dynashard`.
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
        require_greenlet()
        self.sync = Dynashard(
            transport,
            table=table,
            cursor_keys=cursor_keys,
            topology_table=topology_table,
            topology=topology,
            lease=lease,
            runtime=runtime,
            retry_policy=retry_policy,
            throttled=throttled,
            growth=growth,
            operation_seconds=operation_seconds,
            clocks=clocks,
        )

    @classmethod
    def over(cls, db: Dynashard) -> Self:
        """Return the same tables for programs on asyncio. Both may be used side by side; `close` closes both."""
        require_greenlet()
        opened = cls.__new__(cls)
        opened.sync = db
        return opened

    @classmethod
    def local(cls, environ: Mapping[str, str] | None = None, **more: Any) -> Self:
        """Open the local stack, by the environment variables of `make run`; see `Dynashard.local`."""
        return cls.over(Dynashard.local(environ, **more))

    @classmethod
    async def deployed(
        cls,
        environment: str,
        *,
        region: str | None = None,
        profile: str | None = None,
        session: AwsSession | None = None,
        **more: Any,
    ) -> Self:
        """Open the deployed environment with this name in cdk.json; see `Dynashard.deployed`.

        A thread of the event loop's executor asks CloudFormation for the tables.
        """
        require_greenlet()
        find = partial(Dynashard.deployed, environment, region=region, profile=profile, session=session, **more)
        return cls.over(await asyncio.to_thread(find))

    async def close(self) -> None:
        """Close what `Dynashard.close` closes. Connections of other event loops are closed when those run again."""
        await run(self.sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @overload
    def collection(self, model: type[E], /) -> AsyncCollection[E]: ...
    @overload
    def collection(self, model: type[E], other: type[F], /) -> AsyncCollection[E | F]: ...
    @overload
    def collection(self, model: type[E], /, *others: type[E]) -> AsyncCollection[E]: ...
    def collection(self, model: type[E], /, *others: type[Any]) -> AsyncCollection[Any]:
        """Return the collection of an entity's items; see `Dynashard.collection`."""
        return AsyncCollection(self.sync.collection(model, *others))

    async def create_tables(self) -> list[str]:
        """Create the tables if they do not exist, and wait until they can be used; see `Dynashard.create_tables`."""
        return await run(self.sync.create_tables)

    async def transact(self, *steps: "Step") -> list[Entity | None]:
        """Do all steps atomically or none, on items of any entities and shards; see `Dynashard.transact`."""
        return await run(self.sync.transact, *steps)

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a function returns that uses `sync` or anything made of it, such as edges or counters.

        Where the layer waits in it, the event loop goes on. Anything else that blocks in it, such as a file or
        `time.sleep`, stops the loop. It runs in the calling task, so cancelling the task ends it where it waits.
        """
        if iscoroutinefunction(function):
            raise InvalidQueryError(
                f"run takes a plain function: await {getattr(function, '__name__', 'it')}(...) itself"
            )
        return await run(function, *args, **kwargs)

    if not TYPE_CHECKING:
        # Type checkers refuse unknown names by themselves.
        def __getattr__(self, name: str) -> NoReturn:
            cure = "; open the items of an entity with db.collection(User)"
            if name.startswith("_") or name == "sync":
                cure = ""
            elif hasattr(self.sync, name):
                cure = f"; it is db.sync.{name}, for functions that db.run runs"
            raise AttributeError(f"{type(self).__name__} has no attribute {name}{cure}", name=name, obj=self)
