"""Cached properties, which pydantic keeps beside the fields of a model, are neither stored nor checked."""

from functools import cached_property

import pytest
from pydantic import BaseModel, model_validator

from dynashard import Entity, Key, Registry
from dynashard.errors import InvalidValueError
from tests.engine.stored_things import World

pytestmark = pytest.mark.engine


class Line(BaseModel, extra="forbid"):
    """A part of an item, with a property that cannot be stored."""

    text: str = ""

    @cached_property
    def words(self) -> set[str]:
        """Its words, of which there may be none."""
        return set(self.text.split())


class Poem(Entity, name="test.v1.Poem", key=Key("{id}"), registry=Registry()):
    """An entity whose validator has looked at a cached property of every item."""

    id: str
    title: str = ""
    line: Line = Line()

    @cached_property
    def words(self) -> set[str]:
        """The words of its title, of which there may be none."""
        return set(self.title.split())

    @model_validator(mode="after")
    def _short(self) -> "Poem":
        if len(self.words | self.line.words) > 2:
            raise ValueError("too many words")
        return self


def test_an_item_is_stored_without_them(world: World) -> None:
    poems = world.of(Poem)

    poems.create(id="1")
    poems.put(Poem(id="2"))
    poems.batch_write([Poem(id="3")])
    poems.put(poems.get("1").model_copy(update={"line": Line(text="a")}), over=poems.get("1"))

    assert [each for item in world.raw() for each in item if "words" in each] == []
    assert [item["line"]["M"].keys() for item in world.raw()] == [{"text"}] * 3
    assert poems.get("1").line.words == {"a"}


def test_an_update_does_not_refuse_them(world: World) -> None:
    poems = world.of(Poem)
    poems.create(id="1")

    assert poems.update("1", title="a b").words == {"a", "b"}
    with pytest.raises(InvalidValueError, match="too many words"):
        poems.update("1", title="a b c")
