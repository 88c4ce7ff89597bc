"""The scope of a resize, and the keys of its records."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard import Entity, EntityDefinition, Index, Key, Registry, Shards, definition
from dynashard.errors import ConfigurationError
from dynashard.resharding import Scope, Step, Timing
from dynashard.resharding.scope import Family, fits

pytestmark = pytest.mark.unit

REGISTRY = Registry()


class User(
    Entity,
    name="user.v1.User",
    key=Key("{tenant}", "{id}"),
    shards=Shards(16),
    indexes=[
        Index("GSI1", "by_mail", "{tenant}", "{mail}", shards=Shards(4)),
        Index("GSI2", "by_name", "{tenant}", "{id}"),
    ],
    registry=REGISTRY,
):
    tenant: str
    id: str
    mail: str | None = None


class Member(Entity, name="m", key=Key("{team}:{n:03d}", "m#{id}", prefix="team"), shards=Shards(2), registry=REGISTRY):
    team: str
    n: int
    id: str


class Shift(
    Entity,
    name="s",
    key=Key("{team}:{n:03d}", "s#{id}", prefix="team"),
    shards=Shards(2),
    indexes=[Index("GSI3", "by_id", "{id}", "{team}", shards=Shards(2))],
    registry=REGISTRY,
):
    team: str
    n: int
    id: str


class Path(
    Entity,
    name="path.v1.Path",
    key=Key("{path}", "{id}", prefix="", separator="_"),
    shards=Shards(2),
    registry=REGISTRY,
):
    path: str
    id: str


USER, MEMBER, SHIFT, PATH = definition(User), definition(Member), definition(Shift), definition(Path)
ENTITIES: list[EntityDefinition[Any]] = [USER, MEMBER, SHIFT, PATH]


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        (Scope(USER), "user.v1.User"),
        (Scope(USER, "user.v1.User:abc"), "user.v1.User:abc"),
        (Scope(USER, "user.v1.User:a|GSI1"), "user.v1.User:a|GSI1"),
        (Scope(USER, index=USER.indexes["by_mail"]), "user.v1.User|GSI1"),
        (Scope(MEMBER), "team"),
        (Scope(MEMBER, "team:red:007"), "team:red:007"),
        (Scope(SHIFT, index=SHIFT.indexes["by_id"]), "team|GSI3"),
        (Scope(PATH), "=path.v1.Path"),
        (Scope(PATH, "a/b"), "=path.v1.Path:a/b"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_key_leads_back_to_its_scope(scope: Scope, key: str) -> None:
    back = Scope.of_key(key, ENTITIES)

    assert scope.key == key
    assert (back.key, back.partition, back.index) == (key, scope.partition, scope.index)
    assert back.family == scope.family


@given(st.text(min_size=1).filter(lambda text: ":" not in text))
def test_any_partition_leads_back(tenant: str) -> None:
    scope = Scope(USER, f"user.v1.User:{tenant}")

    assert Scope.of_key(scope.key, ENTITIES).partition == scope.partition


@pytest.mark.parametrize(
    "key", ["other", "other:abc", "user.v1.User|GSI2", "user.v1.User|GSI9", "", ":", "@0@user.v1.User"]
)
def test_an_unknown_scope_key_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError):
        Scope.of_key(key, ENTITIES)


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        ("team:red:007", True),
        ("team:r e\nd:007", True),
        ("team:red:07", False),
        ("team:red", False),
        ("team::007", False),
        ("team:a:b:007", False),
        ("crew:red:007", False),
        ("red:007", False),
    ],
)
def test_only_text_that_the_template_renders_is_a_partition(text: str, possible: bool) -> None:  # noqa: FBT001
    assert fits(MEMBER, text) is possible


def test_an_item_is_identified_by_its_type_or_else_by_its_sort_key() -> None:
    team, path = Family([MEMBER, SHIFT]), Family([PATH])

    def stored(partition: str, sort: str, **more: dict[str, str]) -> dict[str, dict[str, str]]:
        return {"PK": {"S": partition}, "SK": {"S": sort}, **more}

    assert team.member_of(stored("team:red:007:1", "s#1")) is SHIFT
    assert team.member_of(stored("team:red:007:1", "m#1", Type={"S": "s"})) is SHIFT
    assert team.member_of(stored("team:red:007:1", "x#1")) is None
    assert team.has(stored("team:red:007:1", "x#1"))
    assert not team.has(stored("teams:red:007:1", "m#1"))
    assert path.has(stored("a_1", "x"))
    assert path.has(stored("a_1", "x", Type={"S": "path.v1.Path"}))
    assert not path.has(stored("a_1", "x", Type={"S": "user.v1.User"}))


def test_a_wait_lasts_until_no_client_can_use_the_old_view() -> None:
    assert Timing(lease=30, operation=10, skew=1).wait(50) == 61


def test_a_step_reports_whole_seconds() -> None:
    step = Step("work", 0.2, (1, 2), 4)

    assert step.as_dict() == {"kind": "work", "seconds": 1, "tasks": [1, 2], "concurrency": 4}
