"""What the OpenAPI document says of access rules: which scopes suffice, and what a writer is answered."""

from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator

from dynashard import Entity, Key, Registry
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.declare import ANYONE, Access, Claim, Exposed, FamilyListing
from dynashard_serving.domain import domain_of

pytestmark = pytest.mark.unit

OWN = Registry()
ADMINS = Claim("groups", "admins")


class Page(Entity, name="rules.v1.Page", key=Key("{tenant_id}", "p_{id}", prefix="rules"), registry=OWN):
    """A page."""

    tenant_id: str
    id: str
    owner: str


class Leaf(Entity, name="rules.v1.Leaf", key=Key("{tenant_id}", "l_{id}", prefix="rules"), registry=OWN):
    """A leaf."""

    tenant_id: str
    id: str


def document(access: Access | None, *others: Any) -> Any:
    return document_of(domain_of(Exposed(Page, path="pages", access=access), *others))


def security(access: Access, method: str = "get") -> Any:
    return document(access)["paths"]["/v1/pages/{id}"][method].get("security")


@pytest.mark.parametrize(
    ("requirement", "enough"),
    [
        ("a", [["a"]]),
        (("a", "b"), [["a"], ["b"]]),
        (("a", ADMINS), [["a"], []]),
        ((ADMINS, "a", "b"), [["a"], ["b"], []]),
        (ADMINS, None),
        (ANYONE, None),
    ],
    ids=str,
)
def test_a_scope_is_only_required_if_nothing_else_is_enough(requirement: Any, enough: Any) -> None:
    wanted = enough and [{"bearer": scopes} for scopes in enough]

    assert security(Access(read=requirement)) == wanted
    # An owner needs the scope too, and so does whom a policy admits.
    owned = Access(read=requirement, owner="{owner}", any_owner="all", policy=lambda *_: True)
    assert security(owned) == wanted


@pytest.mark.parametrize(
    ("pages", "leaves", "enough"),
    [
        ("a", "b", [["a", "b"]]),
        ("a", "a", [["a"]]),
        (("a", ADMINS), "b", [["a", "b"], ["b"]]),
        (("a", ADMINS), ("b", ADMINS), [["a", "b"], ["a"], ["b"], []]),
        (ADMINS, "b", [["b"]]),
        (ADMINS, ANYONE, None),
    ],
    ids=str,
)
def test_a_listing_of_several_kinds_needs_what_each_needs(pages: Any, leaves: Any, enough: Any) -> None:
    others = (Exposed(Leaf, path="leaves", access=Access(read=leaves)), FamilyListing((Page, Leaf), path="all"))

    listing = document(Access(read=pages), *others)["paths"]["/v1/all"]["get"]

    assert listing.get("security") == (enough and [{"bearer": scopes} for scopes in enough])


@pytest.mark.parametrize(
    ("access", "hidden"),
    [
        (None, ()),
        (Access(read=ANYONE, write="a"), ()),
        (Access(read=("a", "b"), write="a"), ()),
        (Access(read="a", write="a", owner="{owner}"), ()),
        (Access(read="a", write="b"), ("post", "put", "patch")),
        (Access(read="a", write=("a", "b")), ("post", "put", "patch")),
        (Access(read="a", write="a", operations={"create": ANYONE}), ("post",)),
        (Access(write="a"), ("post", "put", "patch")),
        (Access(read="a", write="a", owner="{owner}", owned=("read", "put")), ("post", "patch")),
        (Access(read="a", write="a", policy=lambda *_: True), ("post", "put", "patch")),
    ],
    ids=[
        "no rules",
        "anyone reads",
        "who writes may read",
        "an owner reads and writes",
        "another scope reads",
        "one of the scopes reads",
        "anyone creates",
        "nobody reads",
        "an owner may put, not patch",
        "a policy",
    ],
)
def test_writes_say_whether_their_caller_may_lack_the_right_to_read(access: Any, hidden: Any) -> None:
    paths = document(access)["paths"]
    methods = paths["/v1/pages"] | paths["/v1/pages/{id}"]
    texts = {
        method: [
            each.get("description", "") for status, each in methods[method]["responses"].items() if status[0] == "2"
        ]
        for method in ("post", "put", "patch")
    }

    found = [method for method in texts if any("may not read the item" in text for text in texts[method])]

    assert found == list(hidden)
    # A put answers in both ways: it creates, or replaces.
    assert sum("may not read the item" in text for text in texts["put"]) in (0, 2)


@pytest.mark.parametrize(
    ("result", "valid"),
    [
        # Where an answer has no room for items, and for a writer who may not read.
        ({"id": "a", "revision": "r"}, True),
        ({"tenant_id": "t", "id": "a", "revision": "r"}, True),
        ({"id": "a"}, False),
        ({"revision": "r"}, False),
        ({"id": "a", "revision": "r", "owner": "o"}, False),
    ],
    ids=str,
)
def test_a_batch_may_answer_key_and_revision_in_place_of_an_item(result: Any, valid: object) -> None:
    schemas = document(None)["components"]["schemas"]

    assert OAS31Validator(schemas["PageRevision"]).is_valid(result) is valid
