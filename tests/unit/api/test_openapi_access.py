"""What the OpenAPI document says of access rules: which scopes suffice, and what a writer is answered."""

from typing import Any

import pytest

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
