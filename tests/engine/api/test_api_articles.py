"""Articles over REST: a logical partition for each author and year."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from math import ceil
from random import Random
from typing import Any

import pytest

from domain.samples.articles import Article
from dynashard import Dynashard
from dynashard.codec import item_size
from dynashard.topology import DeclaredTopology
from tests.api_caller import TENANT, Answer, Caller
from tests.engine.api.api_on_engine import caller_on
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine


def an_article(**fields: Any) -> dict[str, Any]:
    return {
        "author": "parth_modi",
        "title": "How do partitions split?",
        "published_at": "2017-03-01T10:00:00Z",
        "text": "Slowly.",
        **fields,
    }


def test_the_year_and_the_address_follow_from_the_article(caller: Caller) -> None:
    created = caller.post("/v1/articles", an_article())

    assert (created.status, created.headers["location"]) == (
        201,
        "/v1/articles/parth_modi/2017/how-do-partitions-split",
    )
    assert caller.get(created.headers["location"]).json["text"] == "Slowly."


def test_a_title_is_unique_per_author_and_year(caller: Caller) -> None:
    assert caller.post("/v1/articles", an_article()).status == 201
    assert caller.post("/v1/articles", an_article(author="ada")).status == 201
    assert caller.post("/v1/articles", an_article(published_at="2018-03-01T10:00:00Z")).status == 201
    assert caller.post("/v1/articles", an_article()).code == "already_exists"


def test_the_year_is_in_utc(caller: Caller) -> None:
    late = caller.post("/v1/articles", an_article(published_at="2018-01-01T00:30:00+02:00"))

    assert late.json["year"] == 2017


def test_a_title_is_corrected_without_moving_the_article(caller: Caller) -> None:
    location = caller.post("/v1/articles", an_article()).headers["location"]

    assert caller.patch(location, {"title": "How they split"}).json["slug"] == "how-do-partitions-split"
    assert caller.patch(location, {"published_at": "2019-01-01T00:00:00Z"}).fields == {"": "value_error"}


def test_years_of_an_author_are_listed_as_one_newest_first(caller: Caller) -> None:
    for year in (2015, 2016, 2017):
        for month in (2, 7):
            body = an_article(title=f"{month}", published_at=f"{year}-{month:02d}-01T00:00:00Z")
            assert caller.post("/v1/articles", body).status == 201
    caller.post("/v1/articles", an_article(author="ada"))
    query = "author=parth_modi&year=2017&year=2016&year=2015&index=by_date&order=ordered&direction=desc&limit=4"

    first = caller.get("/v1/articles", query=query)
    second = caller.get("/v1/articles", query=f"{query}&cursor={first.json['cursor']}")

    shown = [item["published_at"][:7] for item in [*first.json["items"], *second.json["items"]]]
    assert shown == ["2017-07", "2017-02", "2016-07", "2016-02", "2015-07", "2015-02"]
    assert second.json["cursor"] is None


def test_an_author_is_listed_without_naming_years(caller: Caller) -> None:
    for year in (2015, 2016, 2017):
        caller.post("/v1/articles", an_article(title=f"of {year}", published_at=f"{year}-02-01T00:00:00Z"))
    caller.post("/v1/articles", an_article(author="parth", published_at="2016-01-01T00:00:00Z"))

    newest = caller.get("/v1/articles", query="author=parth_modi&order=ordered&direction=desc")
    since = caller.get("/v1/articles", query="author=parth_modi&order=ordered&from=2016")

    assert [item["year"] for item in newest.json["items"]] == [2017, 2016, 2015]
    assert [item["year"] for item in since.json["items"]] == [2016, 2017]


def test_a_listing_of_long_articles_costs_what_their_titles_do(
    caller: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(4):
        text = Random(number).randbytes(280_000).hex()[:370_000]
        assert caller.post("/v1/articles", an_article(title=f"t{number}", text=text)).status == 201
    capsys.readouterr()

    for query in ("author=parth_modi&year=2017&fields=title", "author=parth_modi&order=ordered&fields=title"):
        listed = caller.get("/v1/articles", query=query)
        assert len(listed.json["items"]) == 4
        assert json.loads(capsys.readouterr().out)["read_units"] <= 1


def test_an_article_is_read_with_its_text_and_without_it_on_request(caller: Caller) -> None:
    path = caller.post("/v1/articles", an_article()).headers["location"]

    assert caller.get(path).json["text"] == "Slowly."
    assert caller.get(path, query="fields=title").json == {"title": "How do partitions split?"}
    assert "text" not in caller.get("/v1/articles", query="author=parth_modi").json["items"][0]
    assert caller.patch(path, {"title": "new"}).status == 200
    assert caller.get(path).json["text"] == "Slowly."


def test_an_article_that_the_release_before_stored_is_read_and_written(
    caller: Caller, dynamodb: RawDynamoDB, table: str
) -> None:
    path = caller.post("/v1/articles", an_article(text=None)).headers["location"]
    [stored] = dynamodb.call("Scan", TableName=table)["Items"]
    dynamodb.call("PutItem", TableName=table, Item={**stored, "text": {"S": "As it was."}})

    assert caller.get(path).json["text"] == "As it was."
    assert caller.patch(path, {"title": "new"}).status == 200
    assert caller.get(path).json["text"] == "As it was."
    assert caller.patch(path, {"text": "Moved."}).status == 200
    assert caller.get(path).json["text"] == "Moved."
    assert caller.delete(path).status == 204
    assert dynamodb.call("Scan", TableName=table)["Items"] == []


def test_a_cursor_belongs_to_its_years(caller: Caller) -> None:
    for title in ("a", "b"):
        caller.post("/v1/articles", an_article(title=title))
    cursor = caller.get("/v1/articles", query="author=parth_modi&year=2016&year=2017&limit=1").json["cursor"]

    assert cursor
    for years in ("year=2017", "year=2016&year=2018"):
        answer = caller.get("/v1/articles", query=f"author=parth_modi&{years}&limit=1&cursor={cursor}")
        assert (answer.status, answer.code) == (400, "invalid_cursor")


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("year=2017", {"author": "missing"}),
        ("&".join(f"author={number}&year={number + 2000}" for number in range(11)), {"partition": "out_of_range"}),
        ("author=a&year=soon", {"year": "int_parsing"}),
        ("author=a:b&year=2017", {"author": "invalid_key"}),
        ("author=a&year=2017&index=by_date&published_at=x", {"published_at": "datetime_from_date_parsing"}),
    ],
)
def test_a_bad_listing_is_refused_by_field(caller: Caller, query: str, fields: dict[str, str]) -> None:
    assert caller.get("/v1/articles", query=query).fields == fields


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"title": ""}, {"title": "string_too_short"}),
        ({"title": "x" * 301}, {"title": "string_too_long"}),
        ({"year": 2016}, {"": "value_error"}),
        ({"slug": "a b"}, {"slug": "string_pattern_mismatch"}),
        ({"published_at": "2017-03-01T10:00:00"}, {"published_at": "timezone_aware"}),
        ({"author": "a:b"}, {"author": "invalid_key"}),
    ],
)
def test_a_bad_article_is_refused_by_field(caller: Caller, body: dict[str, Any], fields: dict[str, str]) -> None:
    assert caller.post("/v1/articles", an_article(**body)).fields == fields


def test_another_tenant_sees_nothing(caller: Caller) -> None:
    location = caller.post("/v1/articles", an_article()).headers["location"]

    assert caller.of("other").get(location).status == 404
    query = {"author": "parth_modi", "year": "2017"}
    assert caller.of("other").get("/v1/articles", query=query).json["items"] == []


def stored_text(dynamodb: RawDynamoDB, table: str) -> int:
    """Return the KB of the only piece of a text, which is by far the largest row."""
    rows = dynamodb.call("Scan", TableName=table)["Items"]
    return ceil(max(map(item_size, rows)) / 1024)


def test_an_article_costs_what_its_page_says(
    recording: RecordingTransport, dynamodb: RawDynamoDB, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = caller_on(recording, table)
    # The first write of a process reads and writes records of shard counts.
    caller.post("/v1/articles", an_article(author="another", text=None))

    def cost(send: Callable[[], Answer], *, refused: int = 0) -> tuple[float, float, int]:
        """Return read and write units, and round trips. The engine reports none of the `refused` write."""
        recording.clear()
        capsys.readouterr()
        send()
        line = json.loads(capsys.readouterr().out)
        return line["read_units"], line["write_units"] + refused, len(recording.waves) + refused

    text = Random(1).randbytes(50_000).hex()
    article = an_article(text=text)
    path = "/v1/articles/parth_modi/2017/how-do-partitions-split"
    created = cost(lambda: caller.post("/v1/articles", article))
    kilobytes = stored_text(dynamodb, table)

    assert 40 < kilobytes < 100
    assert created == (0, 5 + kilobytes, 3)
    assert cost(lambda: caller.post("/v1/articles", article), refused=1) == (0, 5 + 2 * kilobytes, 5)
    assert cost(lambda: caller.get(path)) == (0.5 + ceil(kilobytes / 4) / 2, 0, 2)
    assert cost(lambda: caller.get(path, query="fields=title")) == (0.5, 0, 1)
    assert cost(lambda: caller.patch(path, {"title": "new"})) == (2, 3, 3)
    assert cost(lambda: caller.patch(path, {"published_at": "2017-04-01T10:00:00Z"})) == (2, 5, 3)
    assert cost(lambda: caller.patch(path, {"text": text[::-1]})) == (2, 7 + 2 * kilobytes, 7)
    assert cost(lambda: caller.delete(path)) == (0, 5 + kilobytes, 3)
    assert cost(lambda: caller.post("/v1/articles", an_article(text=None))) == (0, 3, 1)
    assert cost(lambda: caller.delete(path)) == (0, 3, 1)


LISTED = {
    "a year": ("year=2017&order=ordered", 2.5, [1]),
    "an author, newest first": ("order=ordered&direction=desc", 2.5, [1]),
    "three years, newest first": (
        "year=2015&year=2016&year=2017&index=by_date&order=ordered&direction=desc", 5.5, [3, 1],
    ),
    "a year without articles": ("year=1999&order=ordered", 0.5, [1]),
}  # fmt: skip


@pytest.mark.parametrize("listing", LISTED.values(), ids=LISTED)
def test_a_page_of_articles_costs_what_their_page_says(
    recording: RecordingTransport,
    table: str,
    capsys: pytest.CaptureFixture[str],
    listing: tuple[str, float, list[int]],
) -> None:
    query, units, rounds = listing
    caller = caller_on(recording, table)
    put_articles(Dynashard(recording, table=table, topology=DeclaredTopology(), cursor_keys=["signs the cursors"]))
    # The first listing of a process reads the shard count of its partition.
    caller.get("/v1/articles", query=f"author=parth_modi&{query}")
    recording.clear()
    capsys.readouterr()

    caller.get("/v1/articles", query=f"author=parth_modi&{query}&limit=50")

    assert json.loads(capsys.readouterr().out)["read_units"] == units
    assert recording.waves == rounds


def put_articles(db: Dynashard) -> None:
    """Store sixty articles of 0.4 KB in each of three years."""
    dates = [datetime(year, 2, 1, 0, minute, tzinfo=UTC) for year in (2015, 2016, 2017) for minute in range(60)]
    db.collection(Article).batch_write(
        put=[Article(tenant_id=TENANT, author="parth_modi", title=f"{at:t%M}", published_at=at) for at in dates]
    )
