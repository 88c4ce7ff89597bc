"""Options of `Exposed`, and their effect over REST."""

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from openapi_spec_validator import validate
from pydantic import AwareDatetime, BaseModel, Field, JsonValue, ValidationInfo, field_validator

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
    space: dict[str, Any] = {"__name__": __name__}
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


class Link(BaseModel, extra="forbid"):
    """A link of a chain, which ends with null."""

    next: "Link | None"


class Loop(BaseModel, extra="forbid"):
    """A model without an end: no value fits it."""

    inner: "Loop"


class Odd(Entity, name="odd.v1.Odd", key=Key("{tenant_id}", "{day}#{id}"), registry=REGISTRY):
    """An item whose fields allow few values."""

    tenant_id: str
    day: date
    id: Annotated[str, Field(min_length=10, max_length=12)]
    code: Annotated[str, Field(pattern="^[A-Z]{3}$", examples=["ABC"])]
    above: Annotated[int, Field(gt=5, multiple_of=4)]
    below: Annotated[int, Field(le=-1)]
    least: Annotated[int, Field(ge=7, multiple_of=5)]
    price: Annotated[Decimal, Field(gt=0)]
    raw: bytes
    at: datetime
    hour: time
    span: timedelta
    uid: UUID
    names: set[str]
    pair: tuple[int, str]
    several: Annotated[list[int], Field(min_length=2)]
    free: JsonValue
    chain: Link
    listed: Annotated[str | None, Field(json_schema_extra={"type": ["string", "null"]})]


def test_the_examples_of_the_document_are_accepted_whatever_the_fields_are(transport: Transport, table: str) -> None:
    exposed = Exposed(Odd, path="odds")
    caller = caller_exposing(transport, table, exposed)

    document = document_of(domain_of(exposed))

    validate(document)
    created = caller.post("/v1/odds", example_of(document, "/v1/odds", "post"))
    assert created.status == 201, created.content
    [day, key] = [each["example"] for each in document["paths"]["/v1/odds/{day}/{id}"]["parameters"]]
    replaced = caller.put(f"/v1/odds/{day}/{key}", example_of(document, "/v1/odds/{day}/{id}", "put"))
    assert replaced.status == 200, replaced.content


def test_a_time_of_day_is_described_without_a_zone(transport: Transport, table: str) -> None:
    caller = caller_exposing(transport, table, Exposed(Odd, path="odds"))
    document = document_of(domain_of(Exposed(Odd, path="odds")))
    item = example_of(document, "/v1/odds", "post")

    assert caller.post("/v1/odds", {**item, "hour": "12:00:00Z"}).fields == {"hour": "invalid_value"}
    assert document["components"]["schemas"]["OddCreate"]["properties"]["hour"]["format"] == "time-local"


def test_an_item_that_the_api_would_refuse_is_no_example() -> None:
    class Coded(Entity, name="coded.v1.Coded", key=Key("{tenant_id}", "{id}"), registry=Registry()):
        """An item with a text that nothing but its pattern describes."""

        tenant_id: str
        id: str
        code: Annotated[str, Field(pattern="^[A-Z]{3}$")]

    class Endless(Entity, name="endless.v1.Endless", key=Key("{tenant_id}", "{id}"), registry=Registry()):
        """An item that nobody can make."""

        tenant_id: str
        id: str
        loop: Loop

    document = document_of(domain_of(Exposed(Coded, path="codes"), Exposed(Endless, path="loops")))

    validate(document)
    for path in ("/v1/codes", "/v1/loops"):
        assert example_of(document, path, "post") is None
        assert example_of(document, f"{path}/{{id}}", "put") is None


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Room(
    Entity,
    name="room.v1.Room",
    key=Key("{tenant_id}:{floor}", "{wing:02d}#{level}#{id}"),
    registry=REGISTRY,
):
    """A room, whose key has numbers of few values."""

    tenant_id: str
    floor: Literal[1, 2]
    wing: Literal[1, 10]
    level: Level = Level.LOW
    id: str
    open: Literal[True] | None = None
    beds: Literal[0, 1, "many"] = 0
    names: set[str] | None = None
    sizes: list[int] = Field(default_factory=list)
    near: dict[str, int] = Field(default_factory=dict)
    door: Link | None = None


ROOMS = Exposed(Room, path="rooms", filters=("open", "beds", "names", "sizes", "near", "door"))


def test_an_item_with_literal_numbers_is_found_where_it_was_created(transport: Transport, table: str) -> None:
    caller = caller_exposing(transport, table, ROOMS)
    body = {"floor": 2, "wing": 10, "level": 2, "id": "a", "open": True, "beds": 1}
    created = caller.post("/v1/rooms", body)

    assert created.headers["location"] == "/v1/rooms/2/10/2/a"
    assert caller.get("/v1/rooms/2/10/2/a").json["wing"] == 10
    for query in ("", "&wing=10", "&wing=10&level=2", "&open=true", "&beds=1", "&beds[in]=1,many", "&beds[ne]=many"):
        assert len(caller.get("/v1/rooms", query=f"floor=2{query}").json["items"]) == 1, query
    assert caller.get("/v1/rooms", query="floor=3").fields == {"floor": "literal_error"}
    assert caller.get("/v1/rooms", query="floor=2&open=maybe").fields == {"open": "literal_error"}
    assert caller.get("/v1/rooms/02/10/2/a").code == "not_found"
    assert caller.delete("/v1/rooms/2/10/2/a").status == 204


def test_only_parameters_that_a_query_can_carry_are_documented(transport: Transport, table: str) -> None:
    caller = caller_exposing(transport, table, ROOMS)
    document = document_of(domain_of(ROOMS))
    shared = document["components"]["parameters"].values()
    names = {each["name"] for each in (*document["paths"]["/v1/rooms"]["get"]["parameters"], *shared) if "name" in each}

    for field in ("names", "sizes", "near", "door"):
        assert caller.get("/v1/rooms", query=f"floor=1&{field}=1").status == 422
    assert {name for name in names if name.partition("[")[0] in ("names", "sizes", "near", "door")} == {
        "names[contains]",
        "names[exists]",
        "door[exists]",
    }
    for name in ("names[contains]", "names[exists]", "door[exists]"):
        assert caller.get("/v1/rooms", query=f"floor=1&{name}=true").status == 200


def example_of(document: dict[str, Any], path: str, method: str) -> Any:
    return document["paths"][path][method]["requestBody"]["content"]["application/json"].get("example")
