"""Articles of a publication, by author and year."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from domain.samples.fields import Moment, ShortText
from dynashard import Entity, Index, Key, Shards, created_at, updated_at
from dynashard_patterns import Attachment
from dynashard_serving.declare import Access, serve

SLUG: Final = r"^[^\x00-,./:-@\[-^`{-\x9f]+$"
"""ASCII letters and digits, `-`, `_`, and any character beyond ASCII. `\\w` differs between regex dialects."""

MOST_TEXT: Final = 384 * 1024
"""The most bytes of a text, as JSON. They are one piece, so a read of an article is two requests."""


def _slug(given: dict[str, Any]) -> str:
    """Return the form of a title in an address: its words in lower case, joined by `-`."""
    return "-".join(re.findall(r"\w+", given["title"].lower())) or "untitled"


def _year(given: dict[str, Any]) -> int:
    return int(given["published_at"].astimezone(UTC).year)


@serve(
    path="articles",
    include=("text",),
    access=Access(
        read="articles:read", write="articles:write", owner="{author}", owned=("write",), any_owner="articles:all"
    ),
)
class Article(
    Entity,
    name="article.v1.Article",
    key=Key(partition="{tenant_id}:{author}_{year:04d}", sort="{slug}"),
    indexes=[
        Index("GSI1", "by_date", partition="{tenant_id}:{author}_{year:04d}", sort="{published_at}#{slug}"),
        Index(
            "GSI2",
            "by_author",
            partition="{tenant_id}:{author}",
            sort="{published_at}#{slug}",
            shards=Shards(start=1, max=64),
        ),
    ],
):
    """An article of an author.

    A partition holds one year of one author, so its size is bounded. Two authors may use the same title; an author
    can use it once a year. Several years of an author are listed as one: by title in the table, by date in an index.
    Another index has all articles of an author by date. Its entries are small, because the text is stored out of line.
    """

    tenant_id: str
    author: ShortText
    title: Annotated[str, Field(min_length=1, max_length=300)]
    published_at: Moment
    year: int = Field(default_factory=_year, ge=1, le=9999)
    slug: str = Field(default_factory=_slug, pattern=SLUG, max_length=300)
    text: Annotated[str | None, Attachment(max_bytes=MOST_TEXT)] = None
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()

    @model_validator(mode="after")
    def _published_in_its_year(self) -> Self:
        if self.published_at.astimezone(UTC).year != self.year:
            raise ValueError("published_at must lie in the year, as UTC has it")
        return self
