"""Options of `Exposed`, and their effect over REST."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest
from openapi_spec_validator import validate
from pydantic import AwareDatetime, ValidationInfo, field_validator

from dynashard import Entity, Index, Key, Registry, Shards
from dynashard.errors import DeclarationError
from dynashard.transport import Transport
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.declare import READS, Exposed, FamilyListing, Window, exposure_of
from dynashard_serving.domain import domain_of
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_exposing

pytestmark = pytest.mark.engine

REGISTRY = Registry()
README = Path(__file__).parents[3] / "README.md"


class Visit(
    Entity,
    name="visit.v1.Visit",
    key=Key(partition="{tenant_id}:{place}", sort="{at}#{guest}"),
    shards=Shards(2),
    indexes=[Index("GSI1", "by_guest", partition="{tenant_id}:{guest}", sort="{kind}#{at}#{place}", shards=Shards(2))],
    registry=REGISTRY,
):
    """A visit of a guest to a place."""

    tenant_id: str
    place: str
    at: Annotated[datetime, AwareDatetime]
    guest: str
    kind: str = "short"


class File(Entity, name="file.v1.File", key=Key(partition="{tenant_id}:{path}", sort="{id}"), registry=REGISTRY):
    """A file whose path contains slashes."""

    tenant_id: str
    path: str
    id: str


class Stay(Entity, name="stay.v1.Stay", key=Key(partition="{tenant_id}", sort="{id}"), registry=REGISTRY):
    """A stay whose end is checked against its beginning."""

    tenant_id: str
    id: str
    begin: int
    end: int

    @field_validator("end")
    @classmethod
    def ordered(cls, end: int, info: ValidationInfo) -> int:
        if end < info.data["begin"]:
            raise ValueError("end is before begin")
        return end


VISITS = Exposed(Visit, path="visits", distinct=("at",))


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    called = caller_exposing(transport, table, VISITS)
    for place, day, guest, kind in (
        ("bar", 1, "ada", "short"),
        ("bar", 2, "bob", "long"),
        ("zoo", 1, "ada", "long"),
        ("zoo", 3, "ada", "short"),
    ):
        body = {"place": place, "at": f"2026-11-0{day}T00:00:00Z", "guest": guest, "kind": kind}
        assert called.post("/v1/visits", body).status == 201
    return called


def test_a_patch_of_one_field_is_judged_with_the_stored_ones(transport: Transport, table: str) -> None:
    caller = caller_exposing(transport, table, Exposed(Stay, path="stays"))
    assert caller.post("/v1/stays", {"id": "1", "begin": 5, "end": 9}).status == 201

    refused = caller.patch("/v1/stays/1", {"end": 4})
    stored = caller.patch("/v1/stays/1", {"end": 6})

    assert (refused.status, [each["field"] for each in refused.json["errors"]]) == (422, ["end"])
    assert (stored.status, stored.json["end"]) == (200, 6)


def visits(caller: Caller, query: str) -> list[str]:
    items = caller.get("/v1/visits", query=query).json["items"]
    return [f"{item['place']} {item['at'][8:10]} {item['guest']}" for item in items]


def test_an_adopter_declares_an_entity_in_twenty_lines(transport: Transport, table: str) -> None:
    """The entity of the README is created, listed and documented from its 20 lines."""
    [declared] = re.findall(r"```python\n([^`]*class Project\([^`]*)```", README.read_text())
    assert len([line for line in declared.splitlines() if line.strip()]) <= 20
    space: dict[str, Any] = {"__name__": "domain.projects"}
    # Someone who tries the README has its project in the domain already.
    exec(declared.replace("project.v1", "readme.v1"), space)  # noqa: S102 - the README's own code
    exposed = exposure_of(space["Project"])
    assert exposed is not None
    caller = caller_exposing(transport, table, exposed)

    created = caller.post("/v1/projects", {"id": "p1", "owner_id": "ada", "title": "Engine"})
    assert (created.status, created.headers["location"]) == (201, "/v1/projects/p1")
    assert caller.get("/v1/projects/p1").json["title"] == "Engine"
    assert caller.patch("/v1/projects/p1", {"title": "Engines"}).status == 200
    assert caller.put("/v1/projects/p2", {"owner_id": "bob", "title": "Loom"}).status == 201
    assert {item["id"] for item in caller.get("/v1/projects").json["items"]} == {"p1", "p2"}
    assert len(caller.get("/v1/projects", query="owner_id=ada").json["items"]) == 1
    assert len(caller.get("/v1/projects", query="index=by_owner&owner_id=ada").json["items"]) == 1
    assert caller.delete("/v1/projects/p2").status == 204
    document = document_of(domain_of(exposed))
    validate(document)
    assert {"/v1/projects", "/v1/projects/{id}"} <= set(document["paths"])


def test_the_first_fields_of_the_sort_key_select_items(caller: Caller) -> None:
    assert visits(caller, "place=zoo&at=2026-11-03") == ["zoo 03 ada"]
    assert visits(caller, "place=zoo&at=2026-11-01T01:00:00%2B01:00") == ["zoo 01 ada"]
    assert visits(caller, "place=zoo&at=2026-11-02") == []


def test_an_index_is_chosen_by_the_given_fields(caller: Caller) -> None:
    assert visits(caller, "guest=ada&kind=short&order=ordered") == ["bar 01 ada", "zoo 03 ada"]
    assert visits(caller, "guest=ada&kind=short&at=2026-11-03") == ["zoo 03 ada"]
    assert visits(caller, "guest=ada&kind=short&at=2026-11-03&place=zoo&index=by_guest") == ["zoo 03 ada"]


def test_several_partitions_are_listed_as_one(caller: Caller) -> None:
    query = "place=bar&place=zoo&order=ordered&direction=desc"

    assert visits(caller, query) == ["zoo 03 ada", "bar 02 bob", "bar 01 ada", "zoo 01 ada"]
    assert visits(caller, f"{query}&distinct=at") == ["zoo 03 ada", "bar 02 bob", "bar 01 ada"]
    assert visits(caller, f"place=bar&{query}") == visits(caller, query)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("", {"place": "missing"}),
        ("guest=ada&at=2026-11-01", {"kind": "invalid_key"}),
        ("guest=ada&kind=short&prefix=x", {"prefix": "contradiction"}),
        ("guest=ada&kind=a%23b", {"kind": "invalid_key"}),
        ("place=bar&at=soon", {"at": "datetime_from_date_parsing"}),
        ("place=bar&at=2026-11-01&at=2026-11-02", {"at": "repeated_parameter"}),
        ("place=bar&distinct=kind", {"distinct": "enum"}),
        ("place=bar&place=zoo&distinct=at", {"distinct": "invalid_query"}),
        ("place=bar&include=at", {"include": "unknown_parameter"}),
    ],
)
def test_a_listing_is_refused_by_field(caller: Caller, query: str, fields: dict[str, str]) -> None:
    answer = caller.get("/v1/visits", query=query)

    assert answer.fields == fields


def test_only_the_named_operations_are_served(transport: Transport, table: str) -> None:
    caller = caller_exposing(transport, table, Exposed(Visit, path="visits", operations=READS))
    address = "/v1/visits/bar/2026-11-01T00:00:00Z/ada"

    refused = [
        caller.post("/v1/visits", {}),
        caller.put(address, {}),
        caller.delete(address),
        caller.patch(address, {}),
    ]
    assert [(answer.status, answer.headers["allow"]) for answer in refused] == [(405, "GET, HEAD")] * 4
    assert caller.get(address).status == 404
    hidden = caller_exposing(transport, table, Exposed(Visit, path="visits", operations=()))
    assert hidden.get("/v1/visits", query="place=bar").code == "no_such_route"


def test_the_documentation_has_only_served_operations() -> None:
    document = document_of(
        domain_of(Exposed(Visit, path="visits", operations=READS), Exposed(File, path="files", operations=()))
    )

    validate(document)
    assert set(document["paths"]) == {
        "/v1/health",
        *(f"/v1/visits{path}" for path in ("", "/count", "/batch", "/{place}/{at}/{guest}")),
    }
    assert set(document["paths"]["/v1/visits"]) == {"get"}
    assert "File" not in document["components"]["schemas"]


def test_an_address_may_put_the_field_with_slashes_last(transport: Transport, table: str) -> None:
    caller = caller_exposing(transport, table, Exposed(File, path="files", address=("id", "path")))

    created = caller.post("/v1/files", {"path": "/shared/a.txt", "id": "1"})

    assert created.headers["location"] == "/v1/files/1/%2Fshared%2Fa.txt"
    assert caller.get(created.headers["location"]).json["path"] == "/shared/a.txt"
    assert caller.get("/v1/files/1//shared/a.txt").status == 200
    assert caller.get("/v1/files", query="path=%2Fshared%2Fa.txt").json["items"][0]["id"] == "1"
    assert caller.post("/v1/files", {"path": "a", "id": "1/2"}).fields == {"id": "unaddressable"}


def test_entities_of_different_partitions_are_not_listed_as_one() -> None:
    with pytest.raises(DeclarationError, match="different logical partitions"):
        FamilyListing((Visit, File), path="both")


def test_a_listing_of_several_entities_describes_also_those_that_have_no_path_of_their_own() -> None:
    document = document_of(domain_of(Exposed(Visit, path="visits"), FamilyListing((File,), path="archive")))

    validate(document)
    schemas = document["components"]["schemas"]
    assert {"type", "path", "id", "revision"} <= schemas["ArchiveFile"]["properties"].keys()
    assert schemas["ArchivePage"]["properties"]["items"]["items"]["oneOf"] == [
        {"$ref": "#/components/schemas/ArchiveFile"}
    ]
    assert "File" not in schemas
    assert not [path for path in document["paths"] if path.startswith("/v1/files")]


class Note(Entity, name="note.v1.Note", key=Key(partition="{tenant_id}", sort="{id}"), registry=REGISTRY):
    """A note that says when it was written, or does not."""

    tenant_id: str
    id: str
    at: datetime | None = None


def test_a_window_refuses_a_time_without_a_zone_and_takes_an_item_without_a_time(
    transport: Transport, table: str
) -> None:
    window = Window("at", past=timedelta(days=1), ahead=timedelta(minutes=5))
    caller = caller_exposing(transport, table, Exposed(Note, "notes", window=window))

    assert caller.post("/v1/notes", {"id": "a", "at": "2026-11-21T12:00:00"}).fields == {"at": "invalid_value"}
    assert caller.post("/v1/notes", {"id": "a", "at": "2020-11-21T12:00:00Z"}).fields == {"at": "outside_window"}
    assert caller.post("/v1/notes", {"id": "a"}).status == 201
