"""Which listing fields select, by one rule for Python and REST."""

import pytest

from dynashard import Entity, Index, Key, Registry, definition
from dynashard.errors import InvalidQueryError
from dynashard.reads import index_of
from dynashard.reads.selection import query_of

pytestmark = pytest.mark.unit


class Task(
    Entity,
    name="select.v1.Task",
    key=Key(partition="{tenant}:{project}", sort="{id}"),
    indexes=[
        Index("GSI1", "by_owner", partition="{tenant}:{owner}", sort="{state}_{id}"),
        Index("GSI2", "by_team", partition="{tenant}:{owner}:{team}", sort="{id}"),
    ],
    registry=Registry(),
):
    tenant: str
    project: str
    id: str
    owner: str
    team: str
    state: str


@pytest.mark.parametrize(
    ("names", "index"),
    [
        ("tenant project", None),
        ("tenant project id", None),
        ("tenant owner", "by_owner"),
        ("tenant owner state", "by_owner"),
        ("tenant owner state id", "by_owner"),
        ("tenant owner team", "by_team"),
        ("tenant owner team id", "by_team"),
        ("tenant owner team state", None),  # Two partitions are named, and no listing takes the rest.
        ("tenant owner id", "by_owner"),  # The only partition that is named; its own error says what is missing.
        ("tenant project owner", None),
        ("tenant", None),
        ("", None),
    ],
)
def test_fields_select_a_listing(names: str, index: str | None) -> None:
    assert index_of(definition(Task), names.split()) == index


def test_fields_that_may_filter_select_nothing() -> None:
    assert index_of(definition(Task), ["tenant", "project", "owner"], filters=["owner"]) is None
    assert index_of(definition(Task), ["tenant", "owner", "team"], filters=["team"]) is None


def test_only_the_given_indexes_are_selected() -> None:
    entity = definition(Task)

    assert index_of(entity, ["tenant", "owner"], indexes={"by_team": entity.indexes["by_team"]}) is None


def test_an_index_that_is_no_name_is_refused_where_there_is_none() -> None:
    class Plain(Entity, name="select.v1.Plain", key=Key("{id}"), registry=Registry()):
        id: str

    with pytest.raises(InvalidQueryError, match="index is a int; write the name of an index: there is none"):
        query_of(definition(Plain), {"id": "1"}, {"index": 5})
