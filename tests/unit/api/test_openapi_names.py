"""The OpenAPI document of domains whose classes have equal names, or are used in several places."""

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate
from pydantic import BaseModel, Field, computed_field

from dynashard import Dynashard, Entity, Key, Registry
from dynashard.errors import ConfigurationError
from dynashard_patterns import COUNT_KEY, EDGE_KEY, Edge, EdgeCount, Edges
from dynashard_patterns.counters import Counter
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.declare import (
    Endpoint,
    Exposed,
    Quota,
    ServedCounter,
    ServedEdges,
    endpoint,
    endpoint_of,
)
from dynashard_serving.domain import domain_of

pytestmark = pytest.mark.unit

REGISTRY = Registry()


class Hue(StrEnum):
    RED = "red"
    BLUE = "blue"


class Count(BaseModel, extra="forbid"):
    """A model of the domain with the name of one of this package."""

    of: str


class Song(Entity, name="names.v1.Song", key=Key("{tenant_id}", "{id}"), registry=REGISTRY):
    """A song."""

    tenant_id: str
    id: str
    hue: Hue = Hue.RED
    counted: Count


class Tree(BaseModel, extra="forbid"):
    """A tree."""

    leaves: Decimal
    below: list["Tree"] = []
    called: Annotated[str, Field(serialization_alias="name")] = "oak"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def tall(self) -> bool:
        """Whether something is below it."""
        return bool(self.below)


class Wanted(BaseModel):
    """A request."""

    hue: Hue | None = None


class Like(Edge, name="names.v1.Like", key=EDGE_KEY, registry=REGISTRY):
    """A like."""

    hue: Hue = Hue.RED


class LikeCount(EdgeCount, name="names.v1.LikeCount", key=COUNT_KEY, registry=REGISTRY):
    """A number of likes."""


class Stock(Counter, name="names.v1.Stock", key=Key("{tenant_id}:{hue}"), floor=0, registry=REGISTRY):
    """Stock."""

    tenant_id: str
    hue: Hue


@endpoint(path="oak")
def oak(db: Dynashard, tenant_id: str, wanted: Wanted) -> Tree:
    """Return a tree."""
    raise NotImplementedError


@endpoint(path="old-oak")
def old_oak(db: Dynashard, tenant_id: str, wanted: Wanted) -> Tree:
    """Return another tree."""
    raise NotImplementedError


@endpoint(path="best-song")
def best_song(db: Dynashard, tenant_id: str, wanted: Wanted) -> Song:
    """Return the best song."""
    raise NotImplementedError


@endpoint(path="new-songs")
def new_songs(db: Dynashard, tenant_id: str, wanted: Wanted) -> list[Song]:
    """Return songs."""
    raise NotImplementedError


SONGS = Exposed(Song, "songs")
LIKES = ServedEdges(Edges(Like, forward="LIKES", backward="LIKED_BY", counts=LikeCount), path="likes", verb="like")


def described(*declared: Any) -> dict[str, Any]:
    """Return the document of a domain, which is valid, and whose references lead somewhere."""
    values = [declaration(each) for each in declared]
    document = document_of(domain_of(*values))
    validate(document)
    for reference in references(document):
        found: Any = document
        for name in reference.removeprefix("#/").split("/"):
            assert name in found, reference
            found = found[name]
    return document


def declaration(declared: Any) -> Any:
    return declared if isinstance(declared, Exposed | ServedEdges | ServedCounter) else served(declared)


def served(function: Any) -> Endpoint:
    found = endpoint_of(function)
    assert found is not None
    return found


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (value for name, value in part.items() if name == "$ref")
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from references(each)


def answered(document: dict[str, Any], path: str) -> str:
    """Return the name of the schema of what a GET answers."""
    schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    return str(schema["$ref"].rpartition("/")[2])


def fits(document: dict[str, Any], name: str, value: Any) -> bool:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    return bool(OAS31Validator(schema).is_valid(value))


def ids(document: dict[str, Any]) -> dict[str, str]:
    return {path: methods["get"]["operationId"] for path, methods in document["paths"].items() if "get" in methods}


def test_a_nested_model_may_have_the_name_of_a_schema_of_the_api() -> None:
    document = described(SONGS)

    assert fits(document, "SongCreate", {"id": "1", "counted": {"of": "x"}})
    assert not fits(document, "SongCreate", {"id": "1", "counted": {"count": 1, "exact": True}})
    assert fits(document, answered(document, "/v1/songs/count"), {"count": 1, "exact": True})


def test_a_read_that_answers_with_an_entity_leaves_the_schema_of_its_items() -> None:
    document = described(SONGS, best_song, new_songs)
    plain = {"tenant_id": "abc", "id": "1", "hue": "red", "counted": {"of": "x"}}

    assert fits(document, "Song", {**plain, "revision": "r"})
    assert not fits(document, "Song", plain)
    assert fits(document, answered(document, "/v1/best-song"), plain)
    assert fits(document, answered(document, "/v1/new-songs"), {"items": [plain]})


def test_reads_with_one_answer_are_called_by_their_paths() -> None:
    assert ids(described(oak)) == {"/v1/health": "health", "/v1/oak": "getTree"}
    assert ids(described(SONGS, oak, old_oak, best_song)) == {
        "/v1/health": "health",
        "/v1/songs": "listSong",
        "/v1/songs/count": "countSong",
        "/v1/songs/{id}": "getSong",
        "/v1/oak": "getOak",
        "/v1/old-oak": "getOldOak",
        "/v1/best-song": "getBestSong",
    }


def test_the_answer_of_a_read_is_described_as_it_is_written() -> None:
    document = described(oak)

    written = Tree(leaves=Decimal(2), below=[Tree(leaves=Decimal(1))]).model_dump(mode="json", by_alias=True)
    assert fits(document, "Tree", written)
    assert set(document["components"]["schemas"]["Tree"]["properties"]) == {"leaves", "below", "name", "tall"}
    assert not fits(document, "Tree", {"leaves": "2", "below": [{}], "tall": True})


def test_enums_in_a_query_an_edge_and_the_key_of_a_counter_are_described() -> None:
    document = described(oak, LIKES, ServedCounter(Stock, path="stock"))

    [wanted] = document["paths"]["/v1/oak"]["get"]["parameters"]
    assert wanted["schema"]["anyOf"][0]["enum"] == ["red", "blue"]
    assert fits(document, "Hue", "red")
    assert document["components"]["schemas"]["Like"]["properties"]["hue"]["$ref"] == "#/components/schemas/Hue"


def test_edges_may_have_the_class_name_of_an_entity() -> None:
    class Like(Entity, name="names.v1.OtherLike", key=Key("{tenant_id}", "{id}"), registry=Registry()):
        """Something else."""

        tenant_id: str
        id: str

    document = described(Exposed(Like, "other-likes"), LIKES)

    edge = {"tenant_id": "abc", "node": "A.1", "way": "LIKES", "other": "B.1", "other_type": "B", "hue": "red"}
    edge |= {"since": "2026-11-21T12:00:00Z", "revision": "r"}
    assert fits(document, "Like", {"tenant_id": "abc", "id": "1", "revision": "r"})
    assert fits(document, answered(document, "/v1/likes"), {"items": [edge], "cursor": None})
    assert fits(document, answered(document, "/v1/likes/{node}/{other}"), edge)


def test_two_served_entities_with_one_class_name_are_refused() -> None:
    class Song(Entity, name="names.v2.Song", key=Key("{tenant_id}", "{id}"), registry=Registry()):
        """Another song."""

        tenant_id: str
        id: str

    with pytest.raises(ConfigurationError, match="Song is the class name of two declarations"):
        domain_of(SONGS, Exposed(Song, "psalms"))
    domain_of(SONGS, Exposed(Song, "psalms", operations=()))


def test_a_quota_is_described_at_the_resource_that_has_it_alone() -> None:
    document = described(SONGS, ServedEdges(LIKES.edges, "likes", "like", quota=Quota(5)))
    limited = document_of(domain_of(Exposed(Song, "songs", quota=Quota(5)), LIKES))

    def headers(of: dict[str, Any], path: str) -> set[str]:
        return {name for name in of["paths"][path]["get"]["responses"]["304"]["headers"] if name != "ETag"}

    assert headers(document, "/v1/songs/{id}") == set()
    assert headers(limited, "/v1/songs/{id}") == {"RateLimit", "RateLimit-Policy"}
    assert headers(limited, "/v1/likes/{node}/{other}") == set()
    assert headers(described(SONGS), "/v1/songs/{id}") == set()


@pytest.mark.parametrize("operations", [("get",), ("list",), ("put", "get"), ("create",), ("update",), ("delete",)])
def test_an_entity_with_few_operations_is_described(operations: tuple[str, ...]) -> None:
    described(Exposed(Song, "songs", operations=operations))


def test_a_batch_may_put_what_an_entity_without_create_takes() -> None:
    document = described(Exposed(Song, "songs", operations=("get", "put")))

    put = {"operation": "put", "item": {"id": "1", "counted": {"of": "x"}}}
    assert fits(document, "SongBatch", {"requests": [put]})
    assert not fits(document, "SongBatch", {"requests": [{**put, "item": {"id": "1"}}]})
