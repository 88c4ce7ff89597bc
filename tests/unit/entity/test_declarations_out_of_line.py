"""Fields that are stored out of line: which declarations of them are refused."""

from datetime import datetime
from typing import Annotated

import pytest

from dynashard import Entity, Key, Registry, Shards, created_at, updated_at
from dynashard.entity import OutOfLine
from dynashard.errors import DeclarationError
from dynashard.schema import MAX_ATTACHMENT_BYTES

pytestmark = pytest.mark.unit

KEY = Key(partition="{tenant}", sort="{id}")


def declare(max_bytes: int = 1_000, shards: Shards | None = None, handling: str = "plain") -> type[Entity]:
    class File(Entity, name="file.v1.File", key=KEY, shards=shards, handling=handling, registry=Registry()):
        tenant: str
        id: str
        content: Annotated[str | None, OutOfLine(max_bytes=max_bytes)] = None
        created: datetime = created_at()
        updated: datetime = updated_at()

    return File


@pytest.mark.parametrize("most", [1, MAX_ATTACHMENT_BYTES])
def test_a_field_out_of_line_has_a_largest_size(most: int) -> None:
    assert declare(most).model_fields["content"].default is None


@pytest.mark.parametrize("most", [0, -1, MAX_ATTACHMENT_BYTES + 1])
def test_a_size_that_cannot_be_stored_is_refused(most: int) -> None:
    with pytest.raises(DeclarationError, match=f"max_bytes={most}: use 1 to"):
        declare(most)


def test_each_key_needs_one_home() -> None:
    declare(shards=Shards(4))

    with pytest.raises(DeclarationError, match="random placement: they need one that gives each key one home"):
        declare(shards=Shards(4, placement="random"))


def test_times_that_the_repository_sets_are_read_only() -> None:
    properties = declare().model_json_schema()["properties"]

    assert properties["created"]["readOnly"] is True
    assert properties["updated"]["readOnly"] is True


def test_writes_of_several_requests_cannot_be_exactly_once() -> None:
    assert declare(handling="guarded").model_fields

    with pytest.raises(
        DeclarationError, match=r"file\.v1\.File.*the attachment content.*several requests.*\"guarded\""
    ):
        declare(handling="exactly-once")


def test_writes_of_random_placement_cannot_be_exactly_once() -> None:
    def scattered(handling: str) -> None:
        class Note(
            Entity,
            name="note.v1.Note",
            key=KEY,
            shards=Shards(4, placement="random"),
            handling=handling,
            registry=Registry(),
        ):
            tenant: str
            id: str

    scattered("guarded")

    with pytest.raises(DeclarationError, match=r"random placement.*write placement=.calculated., or another guarantee"):
        scattered("exactly-once")
