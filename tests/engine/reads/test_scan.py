"""Parallel scans."""

from collections.abc import Mapping, Sequence
from random import Random
from threading import Lock
from threading import enumerate as threads
from typing import Any

import pytest

from dynashard import Filter, RetryPolicy
from dynashard.errors import EngineUnavailableError, InvalidQueryError, ThrottledError
from dynashard.runtime import Runtime
from dynashard.testing.faults import FaultyTransport, lost_request, throttled
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import metered
from dynashard.transport.interface import Call, Resend, Transport, Wire
from tests.engine.faces import sleep
from tests.engine.reads.listing_world import (
    INDEXES,
    Counts,
    Note,
    World,
    alive,
    fields_of,
    some_notes,
    tenant,
)
from tests.recording import RecordingTransport
from tests.waiting import until

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def notes(world: World) -> list[Note]:
    """Notes of one tenant over 16 shards, of which some have expired."""
    world.counts = Counts(16)
    made = some_notes(Random(1), 400, of=tenant())
    world.collection().batch_write(put=made)
    return made


@pytest.fixture(scope="module")
def large(world: World) -> str:
    """A tenant with 8 shards of 16 items of 200 KB: 4 answers a shard."""
    world.counts = Counts(8)
    of, collection = tenant(), world.collection()
    for n in range(128):
        collection.create(Note(tenant=of, id=f"{n:03d}", text="x" * 200_000))
    return of


def workers_alive() -> list[str]:
    return [thread.name for thread in threads() if thread.name.startswith("dynashard-scan")]


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 16, 64])
def test_all_items_are_returned_once_with_any_number_of_workers(world: World, notes: list[Note], workers: int) -> None:
    world.counts = Counts(16)

    items = list(world.collection().scan({"tenant": notes[0].tenant}, workers=workers))

    assert fields_of(items) == fields_of(note for note in notes if alive(note))
    assert workers_alive() == []


@pytest.mark.parametrize("index", INDEXES)
def test_all_entries_of_an_index_are_returned_once(world: World, notes: list[Note], index: str) -> None:
    partition = {"tenant": notes[0].tenant, "group": "g"}

    items = list(world.collection().scan(partition, index=index))

    assert fields_of(items) == fields_of(note for note in notes if alive(note) and note.group == "g")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize(
    "span", [{"prefix": "a"}, {"start": "a5", "end": "b5"}, {"start": "b", "end": "b"}, {"end": "b"}], ids=str
)
def test_a_scan_accepts_the_parameters_of_a_listing(
    world: World, notes: list[Note], span: dict[str, str], direction: str
) -> None:
    world.counts = Counts(16)
    partition = {"tenant": notes[0].tenant}
    asked: dict[str, Any] = {**span, "filters": [Filter("kept", "=", value=True)], "direction": direction}

    scanned = list(world.collection().scan(partition, **asked, fields=["id"]))
    listed = [item for page in world.collection().pages(partition, **asked) for item in page.items]

    assert sorted(item["id"] for item in scanned) == sorted(item.id for item in listed)


def test_attributes_that_an_entity_does_not_have_are_not_sent(world: World, notes: list[Note]) -> None:
    world.counts = Counts(16)
    recording = RecordingTransport(world.transport)

    items = list(world.collection(through=recording).scan({"tenant": notes[0].tenant}, workers=2))

    names = {tuple(sorted(request["ExpressionAttributeNames"].values())) for request in recording.requests}
    assert fields_of(items) == fields_of(note for note in notes if alive(note))
    [sent] = names
    assert {"SK", "Rev", "tenant", "kept"} < set(sent)
    assert not any(name.startswith("GSI") for name in sent)


def test_an_ordered_listing_reads_whole_items(world: World, notes: list[Note]) -> None:
    world.counts = Counts(16)
    recording = RecordingTransport(world.transport)

    world.collection(through=recording).list({"tenant": notes[0].tenant}, order="ordered")

    assert not any("ProjectionExpression" in request for request in recording.requests)


def test_a_partition_without_items_is_scanned(world: World) -> None:
    assert list(world.collection().scan({"tenant": tenant()})) == []


@pytest.mark.parametrize("workers", [0, -1, 65])
def test_a_number_of_workers_out_of_range_is_refused(world: World, workers: int) -> None:
    with pytest.raises(InvalidQueryError, match="from 1 to 64") as raised:
        next(world.collection().scan({"tenant": "t"}, workers=workers))

    assert raised.value.field == "workers"


def test_closing_a_scan_stops_its_workers(world: World, large: str) -> None:
    world.counts = Counts(8)
    recording = RecordingTransport(world.transport)

    scan = world.collection(through=recording).scan({"tenant": large}, workers=2)
    next(scan)
    scan.close()

    assert workers_alive() == []
    assert len(recording.answers) < 32


class Ahead(OneByOne):
    """Counts the answers of a scan of which no item has been seen yet."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.most = 0
        self._lock = Lock()
        self._answer_of: dict[str, int] = {}
        self._answers = 0
        self._seen: set[int] = set()

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        answer = self.inner.call(operation, request, resend=resend)
        self._add([answer])
        return answer

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        answers = self.inner.call_all([call._replace(reader=None) for call in calls], concurrency=concurrency)
        self._add(answers)
        return answers

    def _add(self, answers: Sequence[Wire]) -> None:
        with self._lock:
            for answer in answers:
                self._answer_of |= {item["SK"]["S"]: self._answers for item in answer["Items"]}
                self._answers += 1
            self.most = max(self.most, self._answers - len(self._seen))

    def close(self) -> None:
        self.inner.close()

    def see(self, item: Note) -> int:
        """Note that an item has been seen, and return the number of answers with a seen item."""
        with self._lock:
            self._seen.add(self._answer_of[item.id])
            return len(self._seen)

    def wait_for(self, ahead: int) -> None:
        """Wait until `ahead` answers have come of which no item has been seen."""
        until(lambda: self._answers - len(self._seen) >= ahead, sleep=sleep)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_scan_reads_at_most_two_answers_a_worker_ahead(world: World, large: str, workers: int) -> None:
    world.counts = Counts(8)
    ahead = Ahead(world.transport)

    scan = world.collection(through=ahead).scan({"tenant": large}, workers=workers)
    for item in scan:
        if ahead.see(item) == 16:
            break
        ahead.wait_for(workers)
    scan.close()

    # The answers that are handled, all but the one whose items are seen, and those that are read meanwhile.
    assert 2 * workers - 1 <= ahead.most <= 2 * workers


def test_an_error_of_a_worker_reaches_the_consumer_and_stops_the_others(world: World, notes: list[Note]) -> None:
    world.counts = Counts(16)
    faulty = FaultyTransport(world.transport, [lost_request("Query", nth=5)])

    with pytest.raises(EngineUnavailableError, match="The request was lost"):
        list(world.collection(through=faulty).scan({"tenant": notes[0].tenant}, workers=2))

    assert workers_alive() == []
    assert not faulty.waiting


def test_a_throttled_worker_backs_off_and_continues(world: World, notes: list[Note]) -> None:
    world.counts = Counts(16)
    faults = [throttled("Query", reason="TableReadKeyRangeThroughputExceeded", nth=n) for n in (1, 2, 3, 9, 12)]
    faulty = FaultyTransport(world.transport, faults)
    pauses: list[float] = []
    collection = world.collection(
        through=faulty, retry_policy=RetryPolicy(runtime=Runtime(sleep=pauses.append, random=lambda: 1.0))
    )

    items = list(collection.scan({"tenant": notes[0].tenant}, workers=1))

    assert fields_of(items) == fields_of(note for note in notes if alive(note))
    assert not faulty.waiting
    assert pauses == [0.05, 0.1, 0.2, 0.05, 0.05]


def test_a_scan_gives_up_when_throttling_outlasts_its_retry_policy(world: World, notes: list[Note]) -> None:
    world.counts = Counts(16)
    faulty = FaultyTransport(world.transport, [throttled("Query", reason="", nth=None)])
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    retry_policy = RetryPolicy(seconds=3, runtime=Runtime(sleep=sleep, monotonic=lambda: now[0], random=lambda: 1.0))
    collection = world.collection(through=faulty, retry_policy=retry_policy)

    with pytest.raises(ThrottledError):
        list(collection.scan({"tenant": notes[0].tenant}, workers=1))

    # The next pause would end after the three seconds.
    assert now == [pytest.approx(0.05 + 0.1 + 0.2 + 0.4 + 0.8)]
    assert workers_alive() == []


def test_consumption_of_workers_is_metered_in_the_thread_of_the_scan(world: World, notes: list[Note]) -> None:
    world.counts = Counts(16)

    with metered() as meter:
        list(world.collection().scan({"tenant": notes[0].tenant}, workers=4))

    assert meter.queries == 16
    assert meter.consumed.read_units >= 8
