"""Empty tables on a local engine, with faults, time in the test's hands, and resizes on demand."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from dynashard.awaiting import AsyncDynashard
from dynashard.cures import hint
from dynashard.entity import Entity, declaration, definition
from dynashard.entity.registry import REGISTRY
from dynashard.errors import InvalidQueryError, InvalidValueError
from dynashard.resharding import Resharder, Scope, Status, Timing
from dynashard.runtime import Runtime
from dynashard.service import Dynashard
from dynashard.tables import ITEMS, TOPOLOGY
from dynashard.testing.faults import Fault, FaultyTransport, Late
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Transport, connect
from dynashard.transport.interface import READING, Resend, Wire

CURSOR_KEY: Final = "a key of tests, which signs nothing else"
# An engine on this machine shows a transaction at once, and its clock is that of the test.
_TIMING: Final = Timing(lease=30.0, operation=30.0, skew=0.0, lag=0.0)
_SLICE: Final = 2.0
_OPERATIONS: Final = READING | {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
"""The requests for items."""


class _ItemsFail(OneByOne):
    """Sends requests for items to a faulty transport, and those for shard counts, which tests do not see, past it."""

    def __init__(self, faulty: FaultyTransport, topology_table: str) -> None:
        self._faulty = faulty
        self._topology_table = topology_table

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`."""
        past = self._topology_table in str(request)
        return (self._faulty.inner if past else self._faulty).call(operation, request, resend=resend)


class Sandbox:
    """Two empty tables, and what a test does to a program that uses them.

    Time goes on as usual, and jumps where the layer would wait. So retries and resizes take no time. Ids of `new_id()`
    have the sandbox's time, so items of an entity whose placement is `epochs` go to the epoch that has begun.

    Attributes:
        db: a `Dynashard` whose requests fail as `inject` says. Its shard counts do not grow.
        faults: its transport for items, with the requests that were sent. Requests for shard counts never fail.
    """

    def __init__(self, transport: Transport, table: str, topology_table: str) -> None:
        self._transport = transport
        self._jumped = 0.0
        self.table = table
        self.topology_table = topology_table
        self.faults = FaultyTransport(transport)
        self.runtime = Runtime(
            clock=lambda: time.time() + self._jumped,
            sleep=self.pass_time,
            monotonic=lambda: time.monotonic() + self._jumped,
        )
        self.db = self.open(growth="off")

    def open(self, **more: Any) -> Dynashard:
        """Return another `Dynashard` on the tables, such as that of another process, with its own cache of counts.

        `more` are arguments of the constructor, such as `growth`. Its requests fail as `inject` says.
        """
        wire = _ItemsFail(self.faults, self.topology_table)
        arguments: dict[str, Any] = {"cursor_keys": [CURSOR_KEY], "runtime": self.runtime, **more}
        return Dynashard(wire, table=self.table, topology_table=self.topology_table, **arguments)

    @property
    def async_db(self) -> AsyncDynashard:
        """The same for programs on asyncio: its requests fail and its time passes as those of `db`."""
        return AsyncDynashard.over(self.db)

    def inject(self, *faults: Fault) -> None:
        """Let requests fail: `inject(throttled("PutItem"), lost_answer("UpdateItem", nth=2))`.

        Requests are counted from here on. `faults.waiting` has those that no request has met yet.
        """
        for each in faults:
            if not isinstance(each, Fault):
                shown = repr(each) if isinstance(each, str) else f"a {type(each).__name__}"
                cure = "late.fault" if isinstance(each, Late) else 'throttled("PutItem")'
                raise InvalidValueError(f"inject takes faults; it got {shown}; write inject({cure})")
            if each.operation not in _OPERATIONS:
                near = hint(each.operation, sorted(_OPERATIONS))
                raise InvalidValueError(f"{each.operation} is not an operation for items, so no request fails{near}")
        self.faults.inject(*faults)

    def pass_time(self, seconds: float) -> None:
        """Let time jump: leases end, items expire."""
        if not isinstance(seconds, int | float) or seconds < 0:
            raise InvalidValueError(f"pass_time takes seconds; it got {seconds!r}; write pass_time(3600)")
        self._jumped += seconds

    def reshard(self, model: type[Entity], to: int, *, index: str | None = None, **partition: object) -> Status:
        """Change a shard count, from beginning to end, and return its status.

        Args:
            model: the entity.
            to: the new count.
            index: the name of an index, whose count changes instead.
            partition: the fields of the logical partition, such as `tenant_id="abc"`; none for all of them.

        Raises `ReshardRefusedError` if it is impossible.
        """
        [*_, last] = self.phases(model, to, index=index, **partition)
        return last

    def phases(
        self, model: type[Entity], to: int, *, index: str | None = None, **partition: object
    ) -> Iterator[Status]:
        """Change a shard count as `reshard` does, and yield the status at the beginning of each phase.

        What the test does in the loop happens in that phase, as traffic does: `for _ in sandbox.phases(User, 8): ...`
        """
        entity = definition(model)
        if index is not None and index not in entity.indexes:
            raise InvalidQueryError(f"{entity.name} has no index {index}; it has {', '.join(entity.indexes) or 'none'}")
        scope = Scope(
            entity,
            entity.logical_partition(partition) if partition else None,
            entity.indexes[index] if index else None,
        )
        resharder = self._resharder(model)
        # The first request of an entity stores its declared count, which is then changed.
        view = self.db.store.router.topology
        view.view(entity, scope.partition or entity.name) if scope.index is None else view.index_view(
            entity, scope.index
        )
        status = resharder.start(scope, to)
        yield status
        while (step := resharder.advance(scope.key)).kind != "done":
            for task in step.tasks:
                while not resharder.work(scope.key, task, seconds=_SLICE):
                    pass
            before, status = status, resharder.status(scope)
            if (status.phase, status.epochs) != (before.phase, before.epochs):
                yield status
            self.pass_time(step.seconds)
        yield resharder.status(scope)

    def _resharder(self, model: type[Entity]) -> Resharder:
        known = [each.model for each in REGISTRY.values()]
        return Resharder(
            self._transport,
            table=self.table,
            topology_table=self.topology_table,
            entities=known if model in known else [model],
            timing=_TIMING,
            runtime=self.runtime,
        )


@contextmanager
def open_sandbox(endpoint: str) -> Iterator[Sandbox]:
    """Create empty tables in an engine for the time of the block."""
    transport = connect(endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106 - any key will do
    table = f"dynashard-test-{uuid4().hex}"
    names = {table: ITEMS, f"{table}-topology": TOPOLOGY}
    for name, schema in names.items():
        # The local engine needs time for each write in proportion to the records of a stream.
        transport.call("CreateTable", schema.request(name, stream=False))
    sandbox = Sandbox(transport, *names)
    before, declaration.id_time = declaration.id_time, sandbox.db.store.stamp
    try:
        yield sandbox
    finally:
        declaration.id_time = before
        sandbox.db.close()
        for name in names:
            transport.call("DeleteTable", {"TableName": name})
        transport.close()
