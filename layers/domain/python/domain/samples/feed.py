"""The feed of a user: the newest articles of the authors whom the user follows."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import BaseModel, Field

from domain.samples.articles import Article
from domain.samples.follows import FOLLOWS
from dynashard import Dynashard
from dynashard_patterns import EdgeStore
from dynashard_serving.declare import Access, Caller, endpoint

FOLLOWS_READ: Final = "follows:read"
AUTHOR: Final = "Author"
"""The type of the nodes that are authors, such as `Author.ada`."""
MOST_AUTHORS: Final = 100
"""Authors in a feed: those whom the user followed last, as many as one listing reads."""

_Node = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*\.[^:]+$", max_length=200, examples=["User.9"])]


class FeedWanted(BaseModel):
    """The parameters of a request for a feed."""

    of: _Node = Field(description="Whose feed, such as `User.9`.")
    limit: Annotated[int, Field(ge=1, le=100)] = Field(20, description="The most articles on a page.")
    cursor: str | None = Field(None, description="The cursor of the previous page.")


class FeedArticle(BaseModel):
    """An article in a feed."""

    author: str
    year: int
    slug: str
    title: str
    published_at: datetime


class Feed(BaseModel):
    """A page of articles, the newest first. It may be short; only a null cursor ends the listing."""

    items: list[FeedArticle]
    cursor: str | None


def _reads_follows(caller: Caller, _right: str, _wanted: object) -> bool:
    """Return whether a caller may see whom a user follows, which a feed shows too."""
    return FOLLOWS_READ in caller.scopes


@endpoint(
    path="feed",
    summary="List the newest articles of followed authors",
    tag="articles",
    access=Access(read="articles:read", policy=_reads_follows, policy_scopes=(FOLLOWS_READ,)),
)
def feed(db: Dynashard, tenant_id: str, wanted: FeedWanted) -> Feed:
    """Lists the articles of the authors whom a user follows, the newest first."""
    followed = EdgeStore.on(db, FOLLOWS).list(tenant_id, wanted.of, type=AUTHOR, order="newest", limit=MOST_AUTHORS)
    authors = [edge.other.removeprefix(f"{AUTHOR}.") for edge in followed.items]
    if not authors:
        return Feed(items=[], cursor=None)
    page = db.collection(Article).list(
        [{"tenant_id": tenant_id, "author": author} for author in authors],
        index="by_author",
        order="ordered",
        direction="desc",
        limit=wanted.limit,
        cursor=wanted.cursor,
    )
    return Feed(
        items=[FeedArticle.model_validate(each, from_attributes=True) for each in page.items], cursor=page.cursor
    )
