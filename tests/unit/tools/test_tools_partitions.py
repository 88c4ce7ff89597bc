"""The partitions that PARTITION names, by their values or by fields and values."""

import pytest

from domain.samples.articles import Article
from domain.samples.users import User
from dynashard import Entity
from dynashard_tools.entities import partition_fields
from dynashard_tools.failure import CommandError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("model", "text", "fields"),
    [
        (User, "abc", {"tenant_id": "abc"}),
        (User, "tenant_id=abc", {"tenant_id": "abc"}),
        (User, "tenant_id=tenant_id=abc", {"tenant_id": "tenant_id=abc"}),
        (User, "id=abc", {"tenant_id": "id=abc"}),
        (Article, "abc:ada:2026", {"tenant_id": "abc", "author": "ada", "year": 2026}),
        (Article, "tenant_id=abc:author=ada:year=2026", {"tenant_id": "abc", "author": "ada", "year": 2026}),
        (Article, "year=2026:tenant_id=abc:author=ada", {"tenant_id": "abc", "author": "ada", "year": 2026}),
    ],
)
def test_a_partition_is_named_by_its_values_or_as_list_takes_its_fields(
    model: type[Entity], text: str, fields: dict[str, object]
) -> None:
    assert partition_fields(model, text) == fields


@pytest.mark.parametrize("text", ["tenant_id=abc:author=ada", "tenant_id=abc:author=ada:year=2026:slug=x"])
def test_named_fields_of_another_number_are_refused_with_the_form(text: str) -> None:
    with pytest.raises(CommandError, match="has the form tenant_id:author:year"):
        partition_fields(Article, text)
