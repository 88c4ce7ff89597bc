"""Counted things: the seats of a screening, and the likes of an article."""

from typing import Annotated, Final

from pydantic import Field

from domain.samples.articles import SLUG
from domain.samples.fields import ShortText
from dynashard import Key, Shards
from dynashard_patterns import Counter
from dynashard_serving.declare import Access, ServedCounter


class Seats(
    Counter,
    name="screening.v1.Seats",
    key=Key(partition="{tenant_id}:{screening}"),
    floor=0,
    shards=Shards(start=4, max=64),
):
    """The free seats of a screening. They are added once, and taken until none is left."""

    tenant_id: str
    screening: ShortText


class Likes(
    Counter,
    name="article.v1.Likes",
    key=Key(partition="{tenant_id}:{author}_{year:04d}:{slug}"),
    floor=0,
    shards=Shards(start=1, max=64),
):
    """The likes of an article, named as the article is."""

    tenant_id: str
    author: ShortText
    year: Annotated[int, Field(ge=1, le=9999)]
    slug: Annotated[str, Field(pattern=SLUG, max_length=300)]


SEATS: Final = ServedCounter(Seats, path="seats", access=Access(read="seats:read", write="seats:write"))
LIKES: Final = ServedCounter(
    Likes, path="likes", tag="articles", access=Access(read="articles:read", write="likes:write")
)
