"""Cursors of round-robin listings stay short: at any shard count and key length, and while the count changes."""

import string
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard.entity.declaration import fresh_id
from dynashard.placement import CALCULATED
from dynashard.reads.by_shard import decode_positions, encode_positions, list_by_shard
from dynashard.reads.cursor import CursorCodec
from dynashard.reads.fetch import Fetch
from dynashard.reads.positions import MAX_WEIGHT, WINDOW, Positions
from dynashard.reads.query import Budget
from dynashard.reads.sources import Source
from tests.depth import examples
from tests.query_source import SLOT, MemoryTransport, hash_of, index_row, layout, reading, table_row

pytestmark = pytest.mark.unit

CODEC = CursorCodec(["a secret of the windows"])
LETTERS = string.ascii_letters + string.digits
REST = 10_240
"""What API Gateway takes for the request line and the headers."""


class Partition:
    """Items with these sort keys, in the table or an index, whose count can change between two pages."""

    def __init__(self, random: Random, count: int, keys: list[str], slot: str | None = None) -> None:
        self.random, self.count, self.slot = random, count, slot
        self.rows = [table_row("", key) if slot is None else index_row("", key, f"{key}i") for key in keys]
        self.transport = MemoryTransport(slot, random)
        self.more = 0
        """How many positions more a cursor may have: one for each doubling and each merge."""
        self.resize(count)

    def resize(self, count: int) -> None:
        self.more += max(0, (count // self.count).bit_length() - 1) + (count < self.count)
        self.count = count
        name = "PK" if self.slot is None else f"{SLOT}PK"
        self.transport.store({**row, name: {"S": f"p:{hash_of(row) & (count - 1)}"}} for row in self.rows)

    def pages(self, limit: int, *, forward: bool = True) -> Iterator[tuple[list[str], str]]:
        """Yield the sort keys of each page, and its cursor; '' after the last."""
        attribute = "SK" if self.slot is None else f"{SLOT}SK"
        positions: list[Positions] | None = None
        sources: list[Source] = []
        for _ in range(20_000):
            if len(sources) != self.count:
                sources = [Source(number, f"p:{number}") for number in range(self.count)]
            layouts = [layout(reading(self.slot, forward=forward), sources)]
            fetch = Fetch(self.transport, Budget(), lambda layouts=layouts: layouts)  # type: ignore[misc]
            rows, after = list_by_shard(fetch, positions, limit=limit, in_turn=True)
            token = "" if after is None else CODEC.issue([{}, encode_positions(after[0], "p")], b"question")
            yield [row[attribute]["S"] for row in rows], token
            if after is None:
                return
            positions = [decode_positions(CODEC.read(token, b"question")[1], "p")]
        raise AssertionError("the listing does not end")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ids", ["ksuid", "random"])
@pytest.mark.parametrize("count", [64, 256, 1024])
def test_a_cursor_has_at_most_1_kb_at_any_count(count: int, ids: str) -> None:
    random = Random(count)
    keys = [fresh_id() if ids == "ksuid" else "".join(random.choices(LETTERS, k=27)) for _ in range(3000)]

    pages = list(Partition(random, count, keys).pages(5))

    assert sorted(key for page, _ in pages for key in page) == sorted(keys)
    assert 512 < max(len(token) for _, token in pages) <= 1024


def test_as_many_shards_take_turns_as_a_cursor_has_positions() -> None:
    random = Random(3)
    partition = Partition(random, 256, [f"{random.random():.9f}" for _ in range(6000)])

    pages = [page for page, _ in partition.pages(5)]

    shards = [[CALCULATED.shard(CALCULATED.hash(key), 256) for key in page] for page in pages]
    assert [each[0] for each in shards[: 2 * WINDOW]] == [*range(WINDOW)] * 2
    assert partition.transport.read == len(partition.rows)


@st.composite
def long_keys(draw: st.DrawFn) -> tuple[Random, list[str]]:
    random = Random(draw(st.integers(0, 2**32)))
    longest = draw(st.sampled_from([100, 1024]))
    alphabet = draw(st.sampled_from([LETTERS, string.printable, '\0\1\2\3"\\\n', "\u0801\U00010400ä\uffff"]))
    size = draw(st.integers(20, 150))
    lengths = [random.choice([random.randrange(8, longest), longest]) for _ in range(size)]
    texts = ("".join(random.choices(alphabet, k=length)) for length in lengths)
    keys = (f"{random.random():.8f}{text}".encode()[:length] for text, length in zip(texts, lengths, strict=True))
    return random, [key.decode(errors="ignore") for key in keys]


@settings(max_examples=examples(40))
@given(
    of=long_keys(),
    count=st.sampled_from([1, 16, 64, 1024]),
    slot=st.sampled_from([None, SLOT]),
    limit=st.integers(1, 20),
)
def test_a_cursor_fits_a_request_whatever_the_length_of_sort_keys(
    of: tuple[Random, list[str]], count: int, slot: str | None, limit: int
) -> None:
    random, keys = of

    pages = list(Partition(random, count, keys, slot).pages(limit, forward=random.random() < 0.5))

    assert sorted(key for page, _ in pages for key in page) == sorted(keys)
    assert max(len(token) for _, token in pages) < REST * 0.8


@settings(max_examples=examples(60))
@given(
    of=long_keys(), counts=st.lists(st.sampled_from([1, 4, 16, 64, 256, 1024]), min_size=2), limit=st.integers(1, 10)
)
def test_a_doubling_or_a_merge_adds_at_most_one_long_position(
    of: tuple[Random, list[str]], counts: list[int], limit: int
) -> None:
    random, keys = of
    partition = Partition(random, counts[0], keys)
    listed: list[str] = []

    for page, token in partition.pages(limit):
        listed += page
        if token:
            positions = decode_positions(CODEC.read(token, b"question")[1], "p")
            assert positions.weight <= MAX_WEIGHT + 1024 * (1 + partition.more)
            assert len(positions.open) <= WINDOW + partition.more
        if random.random() < 0.3:
            partition.resize(random.choice(counts))

    assert sorted(listed) == sorted(keys)


@pytest.mark.parametrize("length", [300, 600, 1024])
@pytest.mark.parametrize("limit", [3, 20])
def test_as_few_shards_take_turns_as_long_keys_leave_room_for(limit: int, length: int) -> None:
    random = Random(5)
    keys = ["".join(random.choices(LETTERS, k=length)) for _ in range(400)]
    partition = Partition(random, 64, keys)

    pages = list(partition.pages(limit))

    assert sorted(key for page, _ in pages for key in page) == sorted(keys)
    assert max(weight(token) for _, token in pages if token) <= MAX_WEIGHT
    # Few of them are read again.
    assert partition.transport.read < 400 * 1.1


def test_shards_whose_keys_become_long_are_read_to_their_end_one_by_one() -> None:
    random = Random(5)
    keys = [f"{n:05d}" + "".join(random.choices(LETTERS, k=1019 * (n >= 320))) for n in range(640)]
    partition = Partition(random, 64, keys)

    pages = list(partition.pages(3))

    assert sorted(key for page, _ in pages for key in page) == keys
    assert max(weight(token) for _, token in pages if token) <= MAX_WEIGHT + 1024
    assert partition.transport.read < 640 * 1.1


def weight(token: str) -> int:
    """Return the bytes of the positions in a cursor."""
    return decode_positions(CODEC.read(token, b"question")[1], "p").weight
