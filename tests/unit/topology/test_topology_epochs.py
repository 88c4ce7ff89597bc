"""The rules of a history of epochs, and where keys lie that may stand in each shard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.placement import UNSHARDED
from dynashard.topology.epochs import (
    MOST_EPOCHS,
    Epoch,
    Epochs,
    EpochState,
    epochs_of,
    published,
    read,
    settled,
    stored,
)

pytestmark = pytest.mark.unit

PENDING, CONFIRMED, VOID = EpochState.PENDING, EpochState.CONFIRMED, EpochState.VOID
counts = st.sampled_from([1, 2, 4, 8])


def history(*entries: tuple[str, int, EpochState]) -> tuple[Epoch, ...]:
    return tuple(Epoch(*each) for each in entries)


TWO = history(("", 1, CONFIRMED), ("k", 4, CONFIRMED))


def test_a_history_begins_with_what_stands() -> None:
    assert published((), UNSHARDED, "k", 4) == history(("", UNSHARDED, CONFIRMED), ("k", 4, PENDING))


@pytest.mark.parametrize(
    ("before", "first", "problem"),
    [
        (history(("", 1, CONFIRMED), ("k", 4, PENDING)), "m", "not settled"),
        (TWO, "k", "the last entry begins at k, which is not before k"),
        (TWO, "b", "the last entry begins at k, which is not before b"),
        ((*TWO, Epoch("m", 8, CONFIRMED)), "l", "the last entry begins at m, which is not before l"),
        (history(("", 1, CONFIRMED), ("k", 4, VOID)), "k", "which is not before k"),
        (history(*((f"{n:03}" * (n > 0), 1, CONFIRMED) for n in range(MOST_EPOCHS))), "m", "64 entries"),
    ],
)
def test_an_entry_is_published_only_after_a_settled_earlier_one(
    before: tuple[Epoch, ...], first: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        published(before, 1, first, 4)


@pytest.mark.parametrize("state", [CONFIRMED, VOID])
def test_only_the_named_entry_is_settled_and_only_once(state: EpochState) -> None:
    pending = published(TWO, 1, "m", 8)

    assert settled(pending, "m", state) == (*TWO, Epoch("m", 8, state))
    assert settled(pending, "k", state) is None
    assert settled(pending, "x", state) is None
    assert settled(settled(pending, "m", state) or (), "m", VOID) is None


def test_a_history_is_stored_as_it_is_read() -> None:
    pending = published(TWO, 1, "m", 8)

    assert read(stored(pending)) == pending
    assert read([]) == ()


@pytest.mark.parametrize(
    "entries",
    [
        [("a", 1, CONFIRMED)],
        [("", 1, CONFIRMED), ("b", 1, CONFIRMED), ("a", 1, CONFIRMED)],
        [("", 1, CONFIRMED), ("a", 1, CONFIRMED), ("a", 1, CONFIRMED)],
        [("", 1, CONFIRMED), ("a", 1, PENDING), ("b", 1, CONFIRMED)],
    ],
)
def test_what_something_else_has_stored_is_no_history(entries: list[tuple[str, int, EpochState]]) -> None:
    with pytest.raises(ValueError, match="no history of epochs"):
        read(stored(history(*entries)))


@given(st.lists(counts, min_size=1, max_size=6), st.text("abcdefghij", max_size=3))
def test_a_key_lies_in_the_last_epoch_that_does_not_begin_after_it(of: list[int], sort: str) -> None:
    entries = history(
        ("", of[0], CONFIRMED), *((chr(ord("a") + n), count, CONFIRMED) for n, count in enumerate(of[1:]))
    )
    epochs = epochs_of("r", entries)
    expected = [each.count for each in entries if each.first <= sort][-1]

    assert expected == (epochs.count_of(sort) if epochs else of[0])


@given(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=2, max_size=6), st.booleans(), st.booleans())
def test_every_shard_of_a_key_spans_the_key(of: list[int], bare: bool, pending: bool) -> None:  # noqa: FBT001 - drawn
    first = history(("", UNSHARDED if bare else of[0], CONFIRMED))
    later = history(*((chr(ord("a") + n), count, CONFIRMED) for n, count in enumerate(of[1:])))
    entries = (*first, *later[:-1], Epoch(later[-1].first, later[-1].count, PENDING if pending else CONFIRMED))
    epochs = epochs_of("r", entries)
    assert epochs is not None

    for sort in [each.first + "x" for each in entries]:
        possible = [epochs.count_of(sort)]
        if epochs.unsettled(sort):
            possible.append(entries[-2].count)
        for count in possible:
            shards = [0] if count == UNSHARDED else [number + epochs.bare for number in range(count)]
            for shard in shards:
                low, high = epochs.spans[shard]
                assert low <= sort
                assert high is None or sort < high


@pytest.mark.parametrize(("sort", "count"), [("k", 4), ("l", 4), ("m", None), ("n", None)])
def test_an_entry_decides_from_its_first_key_on_and_must_be_settled_for_it(sort: str, count: int | None) -> None:
    epochs = Epochs("r", published(TWO, 1, "m", 8))

    assert epochs.settled_count_of(sort) == count
    assert epochs.unsettled(sort) == (None if count else Epoch("m", 8, PENDING))


def test_a_history_that_was_read_again_places_keys_alike() -> None:
    one, other = (Epochs("r", TWO, settle=lambda _: None) for _ in range(2))

    assert one == other
    assert one != Epochs("r", TWO[:1])


def test_nothing_but_a_view_of_a_table_settles_an_epoch() -> None:
    with pytest.raises(RuntimeError, match="cannot settle the epoch from k on"):
        Epochs("r", TWO).settle(TWO[1])


def test_void_epochs_place_nothing() -> None:
    assert epochs_of("r", history(("", 4, CONFIRMED), ("k", 8, VOID))) is None
    some = epochs_of("r", history(("", 4, CONFIRMED), ("k", 8, VOID), ("m", 2, CONFIRMED)))

    assert some is not None
    assert [some.count_of(sort) for sort in ("a", "l", "m")] == [4, 4, 2]


def test_a_shard_that_only_middle_epochs_have_is_read_only_there() -> None:
    epochs = epochs_of("r", history(("", 1, CONFIRMED), ("b", 4, CONFIRMED), ("c", 2, CONFIRMED)))

    assert epochs is not None
    assert epochs.spans == (("", None), ("b", None), ("b", "c"), ("b", "c"))
