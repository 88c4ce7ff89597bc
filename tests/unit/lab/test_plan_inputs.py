"""What a plan is made from: prices, files of keys, declarations, samples of items."""

from pathlib import Path
from typing import Any

import pytest

from domain.samples.articles import Article
from domain.samples.audit import Access
from domain.samples.follows import FollowCount
from domain.samples.pings import Ping
from domain.samples.plays import EpisodePlays
from domain.samples.users import User
from dynashard import Entity, definition
from dynashard_lab.plan.declared import (
    Given,
    SampleError,
    declared_count,
    estimated_bytes,
    index_loads,
    rises,
    sample_of,
    timed,
)
from dynashard_lab.plan.inputs import PRICES, json_object, skew
from dynashard_lab.plan.key_counts import key_counts
from dynashard_lab.plan.prices import prices_of
from dynashard_tools.load.rows import Lines, rows
from dynashard_tools.topology.facts import Count, EntityFacts

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).parents[3] / "examples"
DOCUMENT: dict[str, Any] = {
    "as_of": "2026-11-22",
    "regions": {
        "us-east-1": {
            "write_unit_hour": 0.001, "read_unit_hour": 0.0002, "write_request_million": 1, "read_request_million": 0.2,
            "storage_gb_month": 0.3,
        },
        "eu-west-1": {"write_unit_hour": 0.002, "read_unit_hour": 0.0004},
    },
}  # fmt: skip


def test_every_region_of_the_included_file_has_prices() -> None:
    document = json_object(PRICES.read_bytes())

    found = {region: prices_of(document, region) for region in document["regions"]}

    assert found["us-east-1"].write_request_million == 0.625
    assert found["us-east-1"].estimated == ()
    assert found["eu-west-1"].write_request_million == pytest.approx(0.7067, abs=1e-4)


def test_missing_prices_are_in_proportion_to_us_east_1_and_say_so() -> None:
    prices = prices_of(DOCUMENT, "eu-west-1")

    assert (prices.write_request_million, prices.storage_gb_month) == (2, 0.6)
    assert prices.estimated == ("write_request_million", "read_request_million", "storage_gb_month")


def test_single_prices_can_be_replaced() -> None:
    prices = prices_of(DOCUMENT, "eu-west-1", {"storage_gb_month": 0.5})

    assert prices.storage_gb_month == 0.5
    assert "storage_gb_month" not in prices.estimated


@pytest.mark.parametrize(
    ("document", "region", "overrides", "message"),
    [
        ({}, "x", {}, "as_of of the prices is None"),
        ({"as_of": "soon"}, "x", {}, "as_of of the prices is 'soon'"),
        ({"as_of": "2026-11-22"}, "x", {}, "no regions"),
        (DOCUMENT, "mars", {}, "no prices for 'mars'"),
        (DOCUMENT, "us-east-1", {"tea": 1.0}, "no price 'tea'"),
        (DOCUMENT, "us-east-1", {"read_unit_hour": float("nan")}, "read_unit_hour is nan"),
        ({**DOCUMENT, "regions": {"a": {"write_unit_hour": 1, "read_unit_hour": 1}}}, "a", {}, "estimate it from"),
        ({**DOCUMENT, "regions": {"a": {"write_unit_hour": True}}}, "a", {}, "write_unit_hour is True"),
        ({**DOCUMENT, "regions": {"a": {"write_unit_hour": 1}}}, "a", {}, "lack read_unit_hour"),
        ({**DOCUMENT, "regions": {"a": 1}}, "a", {}, "not an object"),
    ],
)
def test_wrong_prices_are_refused(
    document: dict[str, Any], region: str, overrides: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        prices_of(document, region, overrides)


def test_keys_are_counted_with_their_numbers() -> None:
    assert key_counts([b"a\n", b"b\t3\r\n", b"\n", b"a\n", b"c"]) == {"a": 2, "b": 3, "c": 1}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no keys"),
        ([b"\xff\n"], "line 1: not UTF-8"),
        ([b"a\n", b"b\tmany\n"], "line 2: 'many' is not a whole number"),
        ([b"a\t0\n"], "'0' is not a whole number"),
        ([b"a\t" + b"9" * 5000], "is not a whole number"),
        ([b"x" * 3000], "longer than 2,048 bytes"),
    ],
)
def test_wrong_keys_are_refused_with_their_line(lines: list[bytes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        key_counts(lines)


def test_sort_keys_of_ids_and_times_rise_and_others_do_not() -> None:
    users, pings, articles = definition(User), definition(Ping), definition(Article)

    assert rises(users, users.sort)
    assert rises(pings, pings.sort)
    assert not rises(articles, articles.sort)
    assert not rises(users, users.indexes["by_email"].sort)


@pytest.mark.parametrize(
    ("entity", "by_time"),
    [(User, True), (Ping, True), (Article, False), (EpisodePlays, False), (FollowCount, False)],
)
def test_keys_whose_time_could_place_them_are_known(entity: type[Entity], *, by_time: bool) -> None:
    assert timed(definition(entity)) is by_time


def test_a_declaration_gives_counts_and_a_rough_size() -> None:
    assert declared_count(definition(User)) == 16
    assert declared_count(definition(Access)) == definition(Access).shards.count  # type: ignore[union-attr]
    assert 200 < estimated_bytes(definition(User)) < 1000


def test_an_index_is_as_hot_as_its_partition_fields_allow() -> None:
    given = Given({"by_manager": 0.01}, {"by_email": 0.5}, {"by_email": 99})
    users = {load.name: load for load in index_loads(definition(User), 0.2, None, given)}
    [by_time] = index_loads(definition(Ping), 0.2, None, Given())

    assert (users["by_email"].hottest, users["by_email"].assumed) == (0.2, "")
    assert (users["by_email"].key_changes, users["by_email"].entry_bytes) == (0.5, 99)
    assert users["by_department"].hottest == 0.2
    assert "as hot as" in users["by_department"].assumed
    assert users["by_manager"].hottest == 0.01
    assert (by_time.hottest, by_time.declared) == (1, 16)
    assert by_time.assumed


def test_an_unknown_index_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no index 'by_name'; it has by_email, by_department, by_manager"):
        index_loads(definition(User), 1, None, Given({"by_name": 0.1}))


def test_live_counts_give_shares_and_the_counts_of_indexes() -> None:
    entity = definition(User)
    own = {"abc": Count(16, 64, None), "def": Count(16, 32, None)}
    live = EntityFacts(entity, Count(16, 16, None), {}, marks=False, partitions=own)

    found = skew(4, None, None, None, sample=None, live=live)
    [email, *_] = index_loads(entity, 1, None, Given(counts={"by_email": 8, "by_department": 4, "by_manager": 4}))

    assert found.shares == pytest.approx((0.5, 0.25, 0.125, 0.125))
    assert email.declared == 8
    assert skew(None, None, None, None, sample=None, live=live).partitions == 2
    assert skew(9, 0.5, None, None, sample=None, live=live).hottest == 0.5


def test_a_sample_measures_sizes_and_indexes() -> None:
    entity = definition(User)
    with (EXAMPLES / "users.csv").open("rb") as file:
        sample = sample_of(entity, rows(Lines(file), "csv", frozenset(User.model_fields)), "abc")

    loads = {load.name: load for load in index_loads(entity, 0.5, sample, Given())}

    assert sample.items == 1000
    assert 300 < sample.item_bytes < 800
    assert loads["by_email"].hottest == 0.5
    assert 0.05 < loads["by_department"].hottest < 0.5
    assert loads["by_manager"].share < 1


@pytest.mark.parametrize(
    ("text", "tenant", "message"),
    [
        ("id,email,display_name\n", "abc", "no items"),
        ("id,email,display_name\n1,a@b.c,Ada\n2,nothing,Bob\n", "abc", "line 3: email"),
        ("id,email,display_name\n1,a@b.c,Ada\n", None, "give one for all rows with --tenant"),
        ('id,email,display_name\n1,"a@b.c,Ada\n', "abc", "line 2: broken CSV|line 2: 2 cells"),
    ],
)
def test_a_wrong_sample_is_refused_with_its_line(tmp_path: Path, text: str, tenant: str | None, message: str) -> None:
    path = tmp_path / "users.csv"
    path.write_text(text)

    with path.open("rb") as file, pytest.raises(SampleError, match=message):
        sample_of(definition(User), rows(Lines(file), "csv", frozenset(User.model_fields)), tenant)
