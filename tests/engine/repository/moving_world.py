"""A resize whose steps happen between the requests of a listing.

The steps are those of the controller and of the mover: phases follow one another only when the client has asked for its
view since the last one, as leases have it; transactions show one item at a time, and other transactions meet a conflict
meanwhile. Notes come and go, at the places where their phase puts them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from threading import RLock, get_ident
from typing import Any
from uuid import uuid4

from greenlet import getcurrent

from dynashard import definition, waiting
from dynashard.entity import IndexDefinition
from dynashard.errors import TransactionConflictError
from dynashard.placement import UNSHARDED
from dynashard.routing import home, index_home
from dynashard.schema import EXPIRES_AT, MOVED_FROM, MOVED_TO, PK, REV, SK, TYPE, index_pk, index_sk
from dynashard.testing.one_by_one import OneByOne
from dynashard.topology import Phase, View
from dynashard.transport import Transport
from dynashard.transport.interface import Resend, Wire
from tests.engine.reads.listing_world import Counts, Note, World

NOTE = definition(Note)
TABLE_COUNTS = [UNSHARDED, 1, 2, 4, 8, 16]
INDEX_COUNTS = [1, 2, 4, 8]


def client() -> int:
    """Return who asks: a thread, or a call on an event loop, which shares its thread and has a greenlet of its own."""
    return get_ident() if waiting.current() is None else id(getcurrent())


@dataclass
class Leased(Counts):
    """Counts that record which clients have asked for them since the last resize."""

    asked: set[int] = field(default_factory=set)
    clients: set[int] = field(default_factory=set)
    idle: set[int] = field(default_factory=set)

    def view(self, *about: Any) -> View:
        self._note()
        return super().view(*about)

    def index_view(self, *about: Any) -> View:
        self._note()
        return super().index_view(*about)

    @property
    def known(self) -> bool:
        """Whether every active client has asked for the present view."""
        return self.clients - self.idle <= self.asked

    @contextmanager
    def nobody_working(self) -> Iterator[None]:
        """Between two pages no client works under a view: the next operation asks for a new one."""
        clients, self.clients = self.clients, set()
        yield
        self.clients = clients
        self.asked |= clients

    def _note(self) -> None:
        self.clients.add(client())
        self.asked.add(client())


class Resize:
    """Changes the counts of a world, one after the other, as long as it is stepped.

    Attributes:
        staying: notes that live throughout.
        passing: notes of which some come and others go.
    """

    def __init__(
        self, world: World, random: Random, notes: Sequence[Note], *, index: bool, counts: Leased | None = None
    ) -> None:
        self.world = world
        self.random = random
        self.rate = random.choice([0.1, 0.5, 0.95])
        self.index = index
        self.alone = False
        drawn = Leased(count=random.choice(TABLE_COUNTS), index_count=random.choice(INDEX_COUNTS))
        self.counts = counts or drawn
        world.counts = self.counts
        self.half: list[Callable[[], None]] = []
        self.left: list[Note] = []
        self.marks: list[Wire] = []
        self.phases: list[Phase] = []
        split = len(notes) * 2 // 3
        self.staying, self.passing = notes[:split], list(notes[split:])
        self.born: list[Note] = []
        self.lock = RLock()
        half = len(self.passing) // 2
        self.left_to_come = self.passing[half:]
        self.present = [*self.staying, *self.passing[:half]]
        world.collection().batch_write(put=self.present)

    # Steps of the resize.

    def step(self) -> None:
        """Take a step at random."""
        with self.lock:
            if self.random.random() < self.rate:
                self._go_on()

    def go_on(self, steps: int) -> None:
        """Take a number of steps while no client works."""
        with self.lock, self.counts.nobody_working():
            for _ in range(steps):
                self._go_on()

    def _go_on(self) -> None:
        if self.half:
            self.half.pop()()
        elif self.random.random() < 0.2:
            self._write()
        elif self.index:
            self._index_step()
        else:
            self._table_step()

    def settle_half(self) -> None:
        """Finish a transaction that is half visible."""
        with self.lock:
            while self.half:
                self.half.pop()()

    def _publish(self, phase: Phase, target: int | None, *, marks: bool) -> None:
        counts = self.counts
        if self.index:
            if phase is Phase.STABLE and target is not None:
                counts.index_count, target = target, None
            counts.index_resize = (phase, target)
        else:
            if phase is Phase.STABLE and target is not None:
                counts.count, target = target, None
            counts.resize = (phase, target)
        counts.marks = marks
        self.phases.append(phase)
        self._outdate_views()

    def _outdate_views(self) -> None:
        self.counts.resizes += 1
        self.counts.asked.clear()

    def _table_step(self) -> None:
        counts = self.counts
        phase, target = counts.resize
        if not counts.known:
            return
        if phase is Phase.STABLE:
            self._sweep_or_begin()
        elif phase is Phase.PREPARE:
            self._publish(Phase.MOVE, target, marks=True)
            # No item is created at an old place any more, so the live items there are all that must move.
            self.left = [note for note in self.present if self._moves(note)]
            self.random.shuffle(self.left)
        elif phase is Phase.MOVE:
            for _ in range(min(len(self.left), self.random.choice([1, 3, 10]))):
                self.settle_half()
                self._move(self.left.pop())
            if not self.left and not self.half:
                self._publish(Phase.SETTLE, target, marks=True)
        else:
            self._publish(Phase.STABLE, target, marks=True)

    def _sweep_or_begin(self) -> None:
        counts = self.counts
        if counts.marks:
            if not self._sweep():
                counts.marks = False
                self._outdate_views()
        else:
            target = self.random.choice([n for n in TABLE_COUNTS if n != counts.count])
            # Views announce markers before the first phase in which one is written.
            self._publish(Phase.PREPARE, target, marks=True)

    def _index_step(self) -> None:
        counts = self.counts
        phase, target = counts.index_resize
        if not counts.known:
            return
        if phase is Phase.STABLE:
            # While older entries stand elsewhere, no count shrinks, and the same count may rewrite them.
            allowed = [n for n in INDEX_COUNTS if n >= counts.index_count or not counts.former]
            target = self.random.choice([n for n in allowed if n != counts.index_count or counts.former])
            self.alone = target > counts.index_count and self.random.random() < 0.7
            self._publish(Phase.PREPARE, target, marks=False)
        elif phase is Phase.PREPARE and self.alone:
            counts.former = (*counts.former, counts.index_count)
            self._publish(Phase.STABLE, target, marks=False)
        elif phase is Phase.PREPARE:
            self._publish(Phase.MOVE, target, marks=False)
            self.left = [n for n in self.present if n.group is not None]
        elif self.left:
            self.random.shuffle(self.left)
            for note in [self.left.pop() for _ in range(min(len(self.left), self.random.choice([1, 3, 10])))]:
                self._rewrite(note, target or 0)
        else:
            counts.former = ()
            self._publish(Phase.STABLE, target, marks=False)

    def move_some(self, target: int, most: int) -> int:
        """Begin a move to a count, move at most `most` notes, and return how many were moved."""
        self._publish(Phase.MOVE, target, marks=True)
        self.left = [note for note in self.present if self._moves(note)]
        moving, self.left = self.left[:most], self.left[most:]
        for note in moving:
            self._move(note)
            self.settle_half()
        return len(moving)

    def finish(self) -> None:
        """Finish the running resize, with its sweep, while no client works."""
        with self.counts.nobody_working():
            while self.half or self.counts.marks:
                self.settle_half()
                self._table_step()

    def write_anew(self, note: Note, **fields: Any) -> None:
        """Change a note at its present place, as a writer does."""
        target = self.counts.resize[1]
        live = [count for count in (self.counts.count, target) if count is not None and self._stored(note, count)]
        wire = self._wire(note.model_copy(update=fields))
        self._put({**wire, **self._key(note, live[0])})

    # Writes of the mover and of other writers.

    def _key(self, note: Note, count: int) -> Wire:
        key = NOTE.key_of(note)
        return {PK: {"S": home(NOTE, key, count)}, SK: {"S": key.sort}}

    def _call(self, operation: str, **request: Any) -> Wire:
        return self.world.transport.call(operation, {"TableName": self.world.table, **request})

    def _stored(self, note: Note, count: int) -> Wire | None:
        """Return the live item at a place."""
        item: Wire | None = self._call("GetItem", Key=self._key(note, count), ConsistentRead=True).get("Item")
        return None if item is None or MOVED_TO in item else item

    def _moves(self, note: Note) -> bool:
        counts = self.counts
        target = counts.resize[1]
        return target is not None and self._key(note, counts.count) != self._key(note, target)

    def _both(self, first: Callable[[], None], second: Callable[[], None]) -> None:
        """Send the writes of a transaction apart: one now, the other later."""
        steps = [first, second]
        if self.random.random() < 0.5:
            steps.reverse()
        steps[0]()
        self.half.append(steps[1])

    def _wire(self, note: Note) -> Wire:
        """Return the note as a writer stores it."""
        counts = self.counts
        phase, target = counts.index_resize
        index_count = target if phase is Phase.MOVE and target is not None else counts.index_count
        wire: Wire = {TYPE: {"S": NOTE.name}, REV: {"S": uuid4().hex}, **NOTE.encode(note.__dict__)}
        for index in NOTE.indexes.values():
            entry = index.entry(note.__dict__)
            if entry is not None:
                count = index_count if index.shards else UNSHARDED
                wire[index_pk(index.slot)] = {"S": index_home(index, entry, NOTE.key_of(note), count)}
                wire[index_sk(index.slot)] = {"S": entry.sort}
        return wire

    def _mark(self, note: Note) -> None:
        key = self._key(note, self.counts.count)
        self.marks.append(key)
        self._call(
            "UpdateItem",
            Key=key,
            UpdateExpression=f"SET {MOVED_TO} = :to REMOVE {EXPIRES_AT}",
            ExpressionAttributeValues={":to": {"N": str(self.counts.resize[1])}},
        )

    def _move(self, note: Note) -> None:
        counts = self.counts
        item = self._stored(note, counts.count)
        target = counts.resize[1]
        assert item is not None
        assert target is not None
        copy = {**item, **self._key(note, target), MOVED_FROM: {"N": str(counts.count)}}
        self._both(lambda: self._mark(note), lambda: self._put(copy))

    def _put(self, item: Wire) -> None:
        self._call("PutItem", Item=item)

    def _rewrite(self, note: Note, count: int) -> None:
        key = NOTE.key_of(note)
        sets, values = [], {}
        for at, index in enumerate(self._sharded()):
            entry = index.entry(note.__dict__)
            if entry is not None:
                sets.append(f"{index_pk(index.slot)} = :v{at}")
                values[f":v{at}"] = {"S": index_home(index, entry, key, count)}
        if note in self.present:
            self._call(
                "UpdateItem",
                Key=self._key(note, self.counts.count),
                UpdateExpression="SET " + ", ".join(sets),
                ExpressionAttributeValues=values,
            )

    def _sharded(self) -> list[IndexDefinition]:
        return [index for index in NOTE.indexes.values() if index.shards]

    def _sweep(self) -> bool:
        """Delete some markers, and return whether there were any."""
        self.random.shuffle(self.marks)
        swept = [self.marks.pop() for _ in range(min(len(self.marks), self.random.choice([1, 20, 100])))]
        for key in swept:
            self._call("DeleteItem", Key=key)
        return bool(swept)

    def _write(self) -> None:
        """Create a note, delete one of the passing ones, or write one anew, whose index entries may move by that."""
        self.settle_half()
        if self.index and self.present and self.random.random() < 0.5:
            self.write_anew(self.random.choice(self.present))
            return
        gone = [note for note in self.passing if note in self.present]
        if gone and self.random.random() < 0.5:
            self.delete(self.random.choice(gone))
        elif self.left_to_come:
            self._create(self.left_to_come.pop())

    def delete(self, note: Note) -> None:
        """Delete a note at its present place, as a writer does."""
        target = self.counts.resize[1]
        for count in {self.counts.count, self.counts.count if target is None else target}:
            if self._stored(note, count):
                self._call("DeleteItem", Key=self._key(note, count))
        self.present.remove(note)
        if note in self.left:
            self.left.remove(note)

    def _create(self, note: Note) -> None:
        counts = self.counts
        phase, target = counts.resize
        wire = self._wire(note)
        if phase not in (Phase.MOVE, Phase.SETTLE) or target is None or not self._moves(note):
            self._put({**wire, **self._key(note, counts.count)})
        else:
            new = {**wire, **self._key(note, target)}
            self._both(lambda: self._mark(note), lambda: self._put(new))
        self.present.append(note)


@dataclass
class Amid(OneByOne):
    """Takes a step of a resize before and after every request.

    Queries return at most `page` items, as if these were large.
    """

    inner: Transport
    resize: Resize
    page: int | None = None

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        self.resize.step()
        if operation == "TransactGetItems" and self.resize.half:
            self.resize.settle_half()
            raise TransactionConflictError("Another transaction holds the item.", operation=operation)
        if operation == "Query" and self.page is not None:
            request = {**request, "Limit": min(self.page, request.get("Limit", self.page))}
        answer = self.inner.call(operation, request, resend=resend)
        self.resize.step()
        return answer
