"""The shards of a partition with epochs: what is read of each, and how positions go from one history to the next."""

import pytest

from dynashard.entity import ItemKey
from dynashard.errors import InvalidCursorError
from dynashard.placement import EPOCHS as PLACED_BY_EPOCHS
from dynashard.placement import UNSHARDED
from dynashard.reads.bounds import Bounds
from dynashard.reads.epoch_sources import EpochSources
from dynashard.reads.filters import FilterExpression
from dynashard.reads.layout import EPOCHS, Layout
from dynashard.reads.positions import Positions
from dynashard.reads.sources import Position, Reading, queries_of
from dynashard.routing import hash_of
from dynashard.schema import SK
from dynashard.topology import Epoch, Epochs, EpochState

pytestmark = pytest.mark.unit

CONFIRMED = EpochState.CONFIRMED


def epochs(*counts: int) -> Epochs:
    """Return epochs that begin at '', k1, k2 and so on."""
    return Epochs("r", tuple(Epoch(f"k{n}" if n else "", count, CONFIRMED) for n, count in enumerate(counts)))


def sources(*counts: int, bounds: Bounds = Bounds()) -> EpochSources:  # noqa: B008 - frozen
    return EpochSources(PLACED_BY_EPOCHS, "p", ":", epochs(*counts), bounds)


def reading(*, forward: bool = True) -> Reading:
    return Reading("t", None, Bounds(), forward, lambda _: True, FilterExpression("", {}, {}))


def layout(*counts: int) -> Layout:
    return Layout(sources(*counts), reading(), version=EPOCHS, former=counts[0] or 1)


def test_every_shard_is_one_source_with_the_range_of_its_epochs() -> None:
    found = [(each.partition, each.range) for each in sources(UNSHARDED, 4, 2)]

    assert found == [
        ("p", Bounds(None, "k1", high_open=True)),
        ("p:0", Bounds("k1")),
        ("p:1", Bounds("k1")),
        ("p:2", Bounds("k1", "k2", high_open=True)),
        ("p:3", Bounds("k1", "k2", high_open=True)),
    ]


def test_a_listing_of_a_range_sends_no_query_to_shards_without_keys_in_it() -> None:
    assert queries_of(sources(1, 4, 16)) == 16
    assert queries_of(sources(1, 4, 16, bounds=Bounds(None, "k1", high_open=True))) == 1
    assert queries_of(sources(1, 4, 16, bounds=Bounds("k11", "k2", high_open=True))) == 4


@pytest.mark.parametrize(
    ("after", "forward", "sent"),
    [
        ("a", True, "from its beginning"),
        ("k1x", True, "from there"),
        ("k2x", True, "nothing"),
        ("k2x", False, "from its beginning"),
        ("k1x", False, "from there"),
        ("a", False, "nothing"),
    ],
)
def test_a_query_never_continues_outside_of_its_range(after: str, sent: str, *, forward: bool) -> None:
    shard = sources(1, 4, 2)[3]

    call = reading(forward=forward).call(shard, 10, Position(after))

    # DynamoDB refuses a starting key outside of the key condition; the local engine does not.
    started = "from there" if call is not None and "ExclusiveStartKey" in call.request else "from its beginning"
    assert (started if call is not None else "nothing") == sent


def test_only_the_shards_at_hand_are_begun_and_the_others_wait_at_their_limits() -> None:
    first = sources(1, 4, 2).begun(Positions(4), forward=True)
    last = sources(1, 4, 2).begun(Positions(4), forward=False)
    middle = sources(1, 4, 2).begun(Positions(1, 0, ((Position("k1x"), 1),)).under(4), forward=True)

    assert (first.now, first.later) == ({0}, {n: ("k1", float("-inf")) for n in (1, 2, 3)})
    assert (last.now, last.later) == ({0, 1}, {n: ("k2", float("inf")) for n in (2, 3)})
    assert (middle.now, middle.later) == ({0, 1, 2, 3}, {})


def test_shards_that_have_ended_are_neither_begun_nor_waited_for() -> None:
    found = sources(1, 4, 2).begun(Positions(1, 0, ((Position("k2"), 1),)).under(4), forward=True)

    assert (found.now, found.later) == ({0, 1}, {})


@pytest.mark.parametrize(("sort", "expected"), [("a", 0), ("k1", 3), ("k2", 1)])
def test_an_item_belongs_to_the_shard_of_its_epoch(sort: str, expected: int) -> None:
    hashed = 0b110

    assert sources(UNSHARDED, 4, 2).number_of(sort, hashed) == expected


def test_nothing_is_known_of_an_item_in_an_epoch_that_is_not_settled() -> None:
    pending = Epochs("r", (Epoch("", 1, CONFIRMED), Epoch("k1", 4, EpochState.PENDING)))
    found = EpochSources(PLACED_BY_EPOCHS, "p", ":", pending, Bounds())

    assert found.number_of("k2", 3) is None
    assert found.number_of("a", 3) == 0


def test_positions_of_one_count_are_those_of_the_first_shards() -> None:
    at_k = Positions(2, 0b01, ((Position("b"), 0b10),), turn=1)

    found = layout(4, 8).rebase(at_k)

    assert (found.size, found.version, found.done) == (8, EPOCHS, 0b0101)
    assert found.open == ((Position("b"), 0b1010),)


def test_positions_of_epochs_outlive_more_and_fewer_shards() -> None:
    begun = layout(1, 4).rebase(Positions(1)).read(0b0001, 4, Position("b"), forward=True)

    more = layout(1, 4, 16).rebase(begun)
    back = Layout(sources(1), reading(), hash_of=lambda _: 0).rebase(more)

    assert (more.size, more.open) == (16, ((Position("b"), 1),))
    assert (back.size, back.version, back.open) == (1, "", ((Position("b"), 1),))


def test_positions_of_several_virtual_shards_to_a_stream_are_refused() -> None:
    with pytest.raises(InvalidCursorError, match="list from the start"):
        layout(4, 8).rebase(Positions(16))


def test_fences_hold_for_one_history_only() -> None:
    assert layout(1, 4).shape != layout(1, 4, 4).shape
    assert layout(1, 4).shape == layout(1, 4).shape


def test_the_home_of_a_row_is_by_its_epoch() -> None:
    found = Layout(
        sources(1, 4),
        reading(),
        home_hash=lambda row: hash_of(PLACED_BY_EPOCHS, ItemKey("p", row[SK]["S"])),
        version=EPOCHS,
        former=1,
    )

    assert found.number_of({SK: {"S": "a"}}) == 0
    assert {found.number_of({SK: {"S": f"k1{n}"}}) for n in range(40)} == {0, 1, 2, 3}
