"""A declaration is enough to make an entity a resource."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from openapi_spec_validator import validate
from pydantic import BaseModel

from domain.samples.users import User
from dynashard import Entity, Index, Key, Registry, Shards, created_at
from dynashard.errors import ConfigurationError, DeclarationError
from dynashard.transport import Transport
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.declare import Exposed, Window, serve
from dynashard_serving.domain import domain_of
from dynashard_serving.operations.served import Served
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_exposing

pytestmark = pytest.mark.engine

REGISTRY = Registry()


class Price(BaseModel, extra="forbid"):
    amount: Decimal
    currency: str = "EUR"


# At most twenty lines, as an adopter writes them.
class Entry(
    Entity,
    name="ledger.v1.Entry",
    key=Key(partition="{tenant_id}:{account}", sort="{number:08d}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_kind", partition="{tenant_id}:{kind}", sort="{number:08d}", shards=Shards(2))],
    registry=REGISTRY,
):
    """A line of an account."""

    tenant_id: str
    account: str
    number: int
    kind: str = "note"
    text: str = ""
    price: Price | None = None
    tags: set[str] | None = None
    booked_at: datetime = created_at()


ENTRIES = Exposed(Entry, path="entries", filters=("kind",))


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    return caller_exposing(transport, table, ENTRIES)


def an_entry(**fields: Any) -> dict[str, Any]:
    return {"account": "cash", "number": 7, **fields}


def test_key_of_several_fields_has_a_segment_for_each(caller: Caller) -> None:
    created = caller.post("/v1/entries", an_entry())

    assert (created.status, created.headers["location"]) == (201, "/v1/entries/cash/7")
    assert caller.get("/v1/entries/cash/7").json == created.json
    assert caller.put("/v1/entries/cash/8", {"kind": "bill"}).json["number"] == 8
    assert caller.patch("/v1/entries/cash/8", {"kind": "note"}).json["kind"] == "note"
    assert caller.delete("/v1/entries/cash/8").status == 204


@pytest.mark.parametrize("address", ["cash", "cash/seven", "/7", "cash/", "cash/7/x"])
def test_a_path_that_is_not_an_address_is_404(caller: Caller, address: str) -> None:
    answer = caller.get(f"/v1/entries/{address}")

    assert (answer.status, answer.code) == (404, "not_found")


def test_nested_values_decimals_and_sets_survive(caller: Caller) -> None:
    entry = an_entry(price={"amount": "12.3400000000000000001"}, tags=["b", "a"])

    created = caller.post("/v1/entries", entry)
    read = caller.get("/v1/entries/cash/7")

    assert created.json["price"] == {"amount": "12.3400000000000000001", "currency": "EUR"}
    assert sorted(read.json["tags"]) == ["a", "b"]
    assert read.json["price"] == created.json["price"]


def test_patch_reaches_into_nested_values(caller: Caller) -> None:
    caller.post("/v1/entries", an_entry(price={"amount": "1", "currency": "USD"}))

    patched = caller.patch("/v1/entries/cash/7", {"price": {"currency": None}})

    assert patched.json["price"] == {"amount": "1", "currency": "EUR"}


def test_nested_field_at_fault_is_named_with_its_path(caller: Caller) -> None:
    answer = caller.post("/v1/entries", an_entry(price={"amount": "much", "tax": 1}))

    assert answer.fields["price.amount"] == "decimal_parsing"


def test_unknown_fields_of_nested_values_are_refused_like_those_of_the_item(caller: Caller) -> None:
    price = {"amount": "1", "tax": 1}
    caller.post("/v1/entries", an_entry(price={"amount": "1"}))

    refused = [
        caller.post("/v1/entries", an_entry(number=8, price=price)),
        caller.put("/v1/entries/cash/7", {"price": price}),
        caller.patch("/v1/entries/cash/7", {"price": price}),
        caller.patch("/v1/entries/cash/7", {"price": {"tax": 1}}),
    ]

    assert [answer.fields for answer in refused] == [{"price.tax": "extra_forbidden"}] * 4
    assert caller.get("/v1/entries/cash/7").json["price"] == {"amount": "1", "currency": "EUR"}


def test_value_that_dynamodb_cannot_store_is_refused(caller: Caller) -> None:
    digits = caller.post("/v1/entries", an_entry(price={"amount": "1" * 39}))
    empty = caller.post("/v1/entries", an_entry(tags=[]))

    assert (digits.status, empty.status) == (422, 422)
    assert {error["code"] for answer in (digits, empty) for error in answer.json["errors"]} == {"invalid_value"}


def test_listing_needs_the_partition_fields(caller: Caller) -> None:
    for number in range(20):
        caller.post("/v1/entries", an_entry(number=number, kind=("note", "bill")[number % 2]))

    missing = caller.get("/v1/entries")
    listed = caller.get("/v1/entries", query="account=cash&order=ordered&limit=3&kind=bill&from=00000002")
    indexed = caller.get("/v1/entries", query="index=by_kind&kind=note&order=ordered")
    looked_up = caller.get("/v1/entries", query="index=by_kind&kind=note&number=4")

    assert missing.fields == {"account": "missing"}
    assert [item["number"] for item in listed.json["items"]] == [3, 5, 7]
    assert [item["number"] for item in indexed.json["items"]] == list(range(0, 20, 2))
    assert [item["number"] for item in looked_up.json["items"]] == [4]
    following = caller.get("/v1/entries", query=urlsplit(listed.headers["link"][1:].partition(">")[0]).query)
    assert [item["number"] for item in following.json["items"]] == [9, 11, 13]


def test_a_number_that_does_not_fit_its_key_is_refused(caller: Caller) -> None:
    answer = caller.post("/v1/entries", an_entry(number=10**9))

    assert answer.fields == {"number": "invalid_key"}


def test_item_over_400_kb_is_refused_with_its_size(caller: Caller) -> None:
    answer = caller.post("/v1/entries", an_entry(text="x" * (400 * 1024 - 150)))

    assert (answer.status, answer.code) == (413, "item_too_large")
    assert answer.json["details"]["size"] > answer.json["details"]["limit"]


def test_document_of_several_resources_is_valid() -> None:
    document = document_of(domain_of(ENTRIES, User))

    validate(document)
    assert "/v1/entries/{account}/{number}" in document["paths"]
    assert {"Entry", "EntryPatch", "User", "UserPage"} <= set(document["components"]["schemas"])


class Public(Entity, name="public.v1.Page", key=Key(partition="all", sort="{id}"), registry=REGISTRY):
    id: str


class Single(Entity, name="single.v1.Tenant", key=Key(partition="{tenant_id}"), registry=REGISTRY):
    tenant_id: str


class Limited(Entity, name="limited.v1.Item", key=Key(partition="{tenant_id}:{limit}", sort="{id}"), registry=REGISTRY):
    tenant_id: str
    limit: str
    id: str


@pytest.mark.parametrize(
    ("entity", "arguments", "reason"),
    [
        (Public, {}, "tenants would see each other"),
        (Single, {}, "no address"),
        (Limited, {}, "query parameters: limit"),
        (Entry, {"address": ("number",)}, "account, number"),
    ],
)
def test_entity_that_cannot_be_exposed_is_refused_with_the_reason(
    entity: type[Entity], arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DeclarationError, match=reason):
        serve("things", **arguments)(entity)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            {"filters": ("colour",)},
            "filters names 'colour', which is not a field; write some of tenant_id, account, number",
        ),
        ({"filters": "kind"}, "filters is 'kind': write a tuple of names, such as filters=(\"kind\",)"),
        ({"filters": 7}, "filters is 7: write a tuple of names"),
        (
            {"distinct": ("colour",)},
            "distinct names 'colour', which is in no sort key of the table or an index; write some of number",
        ),
        (
            {"distinct": ("kind",)},
            "distinct names 'kind', which is in no sort key of the table or an index; write some of number",
        ),
        ({"distinct": "number"}, 'such as distinct=("number",)'),
        ({"operations": ("list", "burn")}, "operations are some of list, create, get, put, update, delete, not burn"),
        ({"operations": "list"}, 'such as operations=("list",)'),
        ({"address": ("colour",)}, "its address must name the fields of its key: tenant_id, account, number"),
        ({"window": Window("colour", timedelta(1), timedelta(1))}, "its window is of colour, which is not a field"),
        ({"window": 60}, 'window is 60: write Window("at", past=timedelta(days=1), ahead='),
        ({"queued": "yes"}, "queued is 'yes': write queued=True, or leave it out"),
        ({"tag": ["ledger"]}, 'write a text, such as tag="incidents"'),
    ],
)
def test_wrong_exposure_is_refused_where_it_is_declared(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        Exposed(Entry, path="entries", **wrong)

    assert str(refused.value).startswith("ledger.v1.Entry: cannot be exposed as /entries: ")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (
            lambda: serve(cast("Any", Entry)),
            r'Entry: serve takes a path: write @serve\(path="things"\) above the class',
        ),
        (lambda: cast("Any", serve)(filters=("kind",)), "^serve: missing a required argument: 'path'"),
        (
            lambda: cast("Any", serve)("entries", auth="x"),
            r"auth is not an argument of serve; write access=Access\(\.\.\.\)",
        ),
        (
            lambda: cast("Any", serve)("entries", filter=("kind",)),
            r"filter is not an argument of serve; did you mean filters\?",
        ),
    ],
)
def test_a_wrong_call_of_serve_names_the_cure(call: Callable[[], object], cure: str) -> None:
    with pytest.raises(DeclarationError, match=cure):
        call()


def test_a_wrong_exposure_stops_the_function_at_its_start(tmp_path: Path) -> None:
    (tmp_path / "domain.py").write_text(
        "from dynashard import Entity, Key\n"
        "from dynashard_serving.declare import serve\n"
        "for number in range(2):\n"
        "    @serve(path='users')\n"
        "    class User(Entity, name=f'user.v{number}.User', key=Key('{tenant_id}', '{id}')):\n"
        "        tenant_id: str\n"
        "        id: str\n"
        "    globals()[f'User{number}'] = User\n"
    )

    ended = subprocess.run(
        [sys.executable, "-c", "import dynashard_serving.api.handler"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 1
    assert "/users cannot be a resource" in ended.stderr


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (("entries", "entries"), "/entries cannot be a resource 2 times"),
        *(((path,), "the API itself answers there") for path in ("health", "docs")),
        *(
            ((path,), "use ASCII letters, digits and - only")
            for path in ("", "a/b", "{id}", "a b", "é", "openapi.json")
        ),
    ],
)
def test_a_taken_or_invalid_path_is_refused(paths: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        domain_of(*(Exposed(Entry, path=path) for path in paths))


class Leaky(
    Entity,
    name="leaky.v1.Item",
    key=Key(partition="{tenant_id}", sort="{id}"),
    indexes=[Index("GSI1", "by_email", partition="{email}", sort="{id}")],
    registry=REGISTRY,
):
    tenant_id: str
    id: str
    email: str


def test_index_that_is_not_of_one_tenant_is_not_served() -> None:
    assert Served(Exposed(Leaky, path="leaky")).indexes == {}
