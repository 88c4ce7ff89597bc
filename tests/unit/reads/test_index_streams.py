"""The order in which the shards of an index are read while entries stand by several counts."""

from itertools import combinations

import pytest

from dynashard import Entity, Index, Key, Registry, Shards, definition
from dynashard.reads.layout import index_streams
from dynashard.reads.sources import Group, Source
from dynashard.topology import Phase, View

pytestmark = pytest.mark.unit

COUNTS = (1, 2, 4, 8, 16)


class Note(
    Entity,
    name="note.v1.Note",
    key=Key("{tenant}", "{id}"),
    indexes=[Index("GSI1", "by_rank", "{tenant}", "{rank}", shards=Shards(1))],
    registry=Registry(),
):
    tenant: str
    id: str
    rank: str


BY_RANK = definition(Note).indexes["by_rank"]


def waves_of(view: View) -> dict[str, tuple[int, int]]:
    """Return the group and the wave of each shard."""
    found: dict[str, tuple[int, int]] = {}
    for group in index_streams(BY_RANK, "p", view):
        assert isinstance(group, Group)
        waves = [wave for wave, size in enumerate(group.waves) for _ in range(size)]
        assert len(waves) == len(group.sources)
        found |= {source.partition: (group.number, wave) for source, wave in zip(group.sources, waves, strict=True)}
    return found


@pytest.mark.parametrize(("former", "count"), [(c[:-1], c[-1]) for n in (2, 3, 4) for c in combinations(COUNTS, n)])
@pytest.mark.parametrize("growing", [False, True])
def test_entries_come_to_their_places_only_in_later_waves_of_their_group(
    former: tuple[int, ...], count: int, *, growing: bool
) -> None:
    view = View(former[-1], Phase.PREPARE, count, former=former[:-1]) if growing else View(count, former=former)
    waves = waves_of(view)

    assert len(waves) == count
    for hashed in range(16):
        group, wave = waves[f"p:{hashed & (count - 1)}"]
        for older in former:
            of, before = waves[f"p:{hashed & (older - 1)}"]
            assert of == group
            assert before < wave or hashed & (older - 1) == hashed & (count - 1)


@pytest.mark.parametrize(("count", "target"), [(8, 2), (16, 1)])
def test_shards_that_will_be_left_are_read_first(count: int, target: int) -> None:
    waves = waves_of(View(count, Phase.MOVE, target))

    assert {wave for shard, (_, wave) in waves.items() if int(shard[2:]) >= target} == {0}
    assert {wave for shard, (_, wave) in waves.items() if int(shard[2:]) < target} == {1}


def test_an_index_of_one_count_has_plain_shards() -> None:
    assert [type(each) for each in index_streams(BY_RANK, "p", View(4))] == [Source] * 4
