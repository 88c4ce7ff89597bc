"""What a resumed listing remembers, where the real API needs many or odd items to show it."""

from typing import Any

import pytest

from dynashard_client import Item, Page
from dynashard_client.resource import resource_of
from dynashard_client.resuming import Resumption

pytestmark = pytest.mark.unit

ATTEMPTS = 5


class Note(Item, path="notes", sort={"by_rank": "{rank}#{topic}"}):
    id: str
    rank: str = "r"
    topic: str = "t"


def resumption(**asked: Any) -> Resumption:
    resource = resource_of(Note)
    assert resource is not None
    return Resumption(resource, {}, asked, ATTEMPTS)


def shown(listing: Resumption, *notes: Note) -> list[str]:
    return [note.id for note in listing.unseen(Page([*notes], "cursor")).items]


def note(name: str, **fields: str) -> Note:
    return Note(id=name, **fields)


@pytest.mark.parametrize(("direction", "before"), [("asc", "a"), ("desc", "l")])
def test_after_a_key_as_long_as_a_key_may_be_the_listing_begins_again(direction: str, before: str) -> None:
    listing, longest = resumption(order="ordered", direction=direction), "k" * 1024
    asked = {"order": "ordered", "direction": direction, "cursor": "c"}

    assert shown(listing, note(before), note(longest)) == [before, longest]
    assert listing.continued(asked) == {"order": "ordered", "direction": direction}
    assert shown(listing, note(before), note(longest)) == []


def test_a_copy_at_another_key_is_left_out_if_its_value_was_returned() -> None:
    listing = resumption(order="ordered", index="by_rank", distinct="topic")

    assert shown(listing, note("1", rank="r1", topic="a"), note("2", rank="r2", topic="b")) == ["1", "2"]
    assert shown(listing, note("3", rank="r3", topic="a"), note("4", rank="r3", topic="c")) == ["4"]


def test_an_ordered_listing_remembers_the_items_of_its_last_key_alone() -> None:
    listing = resumption(order="ordered", index="by_rank")

    for number in range(100):
        shown(listing, note(f"{number}", rank=f"r{number:03d}"), note(f"{number}x", rank=f"r{number:03d}"))

    assert len(listing._returned) == 2


def test_a_listing_in_turn_that_remembers_too_many_items_is_not_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynashard_client.resuming.MOST_REMEMBERED", 2)
    listing = resumption()

    shown(listing, note("a"), note("b"))
    assert listing.continued({}) == {}
    shown(listing, note("c"))
    assert listing.continued({}) is None
