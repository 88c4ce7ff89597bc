"""What a domain says about how it is served: refused where it is wrong, and found in its modules."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from domain.samples.plays import PLAYS
from dynashard import DeclarationError, Dynashard, Entity, Key, Registry
from dynashard.errors import ConfigurationError
from dynashard_patterns import EDGE_KEY, Edge, Edges
from dynashard_serving.declare import (
    Exposed,
    FamilyListing,
    ServedEdges,
    ServedRollUps,
    endpoint,
    endpoint_of,
    exposure_of,
    serve,
)
from dynashard_serving.discovery import declarations_of, found_in, index_of, module_names
from dynashard_serving.domain import domain_of
from dynashard_serving.operations.edges import Words
from tests.domain_served import ENTITIES

pytestmark = pytest.mark.unit

REGISTRY = Registry()


class Base(Entity):
    tenant_id: str
    id: str


@serve(path="books")
class Book(Base, name="declare.v1.Book", key=Key("{tenant_id}", "{id}"), registry=REGISTRY):
    """A book."""


class Reprint(Book, name="declare.v1.Reprint", key=Key("{tenant_id}", "{id}"), registry=REGISTRY):
    """A reprint, which does not say how it is served."""


class Uncounted(Edge, name="declare.v1.Uncounted", key=EDGE_KEY, registry=REGISTRY):
    """Edges without counts."""


class Titled(Entity, name="declare.v1.Titled", key=Key("{tenant_id}", "{id}", prefix="declare"), registry=REGISTRY):
    tenant_id: str
    id: str
    type: str


class Wanted(BaseModel):
    word: str


class Found(BaseModel):
    word: str


def test_a_class_is_served_as_the_line_above_it_says_and_one_derived_from_it_is_not() -> None:
    assert exposure_of(Book) == Exposed(Book, path="books")
    assert exposure_of(Reprint) is None


def test_an_entity_that_is_not_served_is_known_by_its_class_in_the_plural() -> None:
    names = {each.entity.__name__: (each.path, each.operations, each.route) for each in ENTITIES}

    assert names["EpisodePlays"] == ("episode-plays", (), "/v1/roll-ups")
    assert names["Follow"] == ("follows", (), "/v1/follows")
    assert names["FollowCount"] == ("follow-counts", (), "/v1/follows/counts")
    assert [each.path for each in declarations_of([Reprint]).entities] == ["reprints"]
    assert domain_of(Reprint).roots == {}


def no_model(db: Dynashard, tenant_id: str, wanted: str) -> Found:
    """Find."""
    raise NotImplementedError


def no_request(db: Dynashard, tenant_id: str) -> Found:
    """Find."""
    raise NotImplementedError


def no_answer(db: Dynashard, tenant_id: str, wanted: Wanted) -> dict[str, Any]:
    """Find."""
    raise NotImplementedError


def no_items(db: Dynashard, tenant_id: str, wanted: Wanted) -> list[str]:
    """Find."""
    raise NotImplementedError


def no_words(db: Dynashard, tenant_id: str, wanted: Wanted) -> Found:
    raise NotImplementedError


@pytest.mark.parametrize("function", [no_model, no_request, no_answer, no_items])
def test_a_read_without_models_is_refused_with_what_to_write(function: Callable[..., Any]) -> None:
    with pytest.raises(DeclarationError) as refused:
        endpoint(path="finds")(function)

    assert str(refused.value).startswith(f"{function.__name__}: cannot be served as /finds: write (db: Dynashard,")


def test_a_read_without_a_description_is_refused() -> None:
    with pytest.raises(DeclarationError, match="no_words: cannot be served as /finds: write a docstring"):
        endpoint(path="finds")(no_words)

    endpoint(path="finds", summary="Find words")(no_words)
    described = endpoint_of(no_words)
    assert described is not None
    assert (described.summary, described.many, described.answer) == ("Find words", False, Found)


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (
            lambda: ServedEdges(Edges(Uncounted, forward="A", backward="B"), path="edges", verb="like"),
            "declare.v1.Uncounted: cannot be served as /edges: declare counts, a class of EdgeCount",
        ),
        (
            lambda: ServedRollUps(PLAYS, path="sums", name="Sums", parameters={"colour": "A colour."}),
            "roll-ups plays: cannot be served as /sums: parameters names 'colour'; write some of episode, level",
        ),
        (
            lambda: FamilyListing((Book, Titled), path="all"),
            "declare.v1.Titled: /all lists entities of different logical partitions as one",
        ),
        (
            lambda: FamilyListing((Titled,), path="all"),
            "declare.v1.Titled: /all needs the name type for the entity's name",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_name_and_what_to_write(
    declare: Callable[[], object], reason: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare()

    assert str(refused.value).startswith(reason)


@pytest.mark.parametrize("verb", ["", "Follow", "follows it", "été"])
def test_a_verb_that_is_not_a_word_is_refused(verb: str) -> None:
    [edges] = declarations_of(each.value for each in found_in(["domain.samples.follows"])).edges

    with pytest.raises(DeclarationError, match="write one word in lower case, such as follow"):
        ServedEdges(edges, path="edges", verb=verb)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("follow", ("follows", "followed", "following", "follower", "unfollow")),
        ("like", ("likes", "liked", "liking", "liker", "unlike")),
    ],
)
def test_a_verb_gives_the_words_about_its_edges(verb: str, words: tuple[str, ...]) -> None:
    of = Words(verb)

    assert (of.says, of.past, of.doing, of.doer, of.undo) == words


def test_a_name_that_two_declarations_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="reprints is the path of two declarations"):
        domain_of(Reprint, Exposed(Book, path="reprints"))
    with pytest.raises(ConfigurationError, match=r"declare\.v1\.Book is the entity's name of two declarations"):
        domain_of(Book, Exposed(Book, path="volumes"))
    with pytest.raises(ConfigurationError, match="plays is the name of roll-ups of two declarations"):
        domain_of(PLAYS, PLAYS)


MODULES = {
    "__init__.py": "",
    "__main__.py": "raise SystemExit",
    "first.py": (
        "from dynashard import Entity, Key, Registry\n"
        "from dynashard_serving.declare import serve\n"
        "R = Registry()\n"
        "class Base(Entity):\n    tenant_id: str\n    id: str\n"
        "@serve(path='firsts')\n"
        "class First(Base, name='f.v1.First', key=Key('{tenant_id}', 'first_{id}', prefix='f'), registry=R): ...\n"
    ),
    "below/__init__.py": "",
    "below/second.py": (
        "from dynashard import Key\n"
        "from found.first import R, Base, First\n"
        "from dynashard_serving.declare import FamilyListing, serve\n"
        "@serve(path='seconds')\n"
        "class Second(Base, name='f.v1.Second', key=Key('{tenant_id}', 'second_{id}', prefix='f'), registry=R): ...\n"
        "BOTH = FamilyListing((First, Second), path='both')\n"
    ),
    "third.py": "from found.below.second import BOTH, Second\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, code in MODULES.items():
        (tmp_path / "found" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "found" / name).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield "found"
    for name in [name for name in sys.modules if name.split(".")[0] == "found"]:
        del sys.modules[name]


def test_modules_of_all_folders_are_found_and_what_they_import_counts_once(package: str) -> None:
    names = [name for name in module_names(package) if name.startswith("found")]

    assert names == ["found", "found.below", "found.below.second", "found.first", "found.third"]
    found = [(each.module, each.name) for each in found_in(names)]
    assert found == [("found.below.second", "Second"), ("found.below.second", "BOTH"), ("found.first", "First")]


def test_the_index_names_the_modules_that_share_an_entitys_partitions(package: str) -> None:
    index = index_of([name for name in module_names(package) if name.startswith("found")])

    assert index["roots"] == {
        "seconds": ["Second", ["found.below.second", "found.first"]],
        "firsts": ["First", ["found.first", "found.below.second"]],
        "both": ["BOTH", ["found.below.second"]],
    }
