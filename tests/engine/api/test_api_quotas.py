"""Quotas of requests per tenant and resource: no number of processes exceeds one, and a lost counter stops nobody."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from pydantic import BaseModel

from domain.samples.contacts import ContactMethod, NotificationRule
from domain.samples.follows import FOLLOWS
from domain.samples.plays import PLAYS
from domain.samples.seats import Seats
from dynashard import Dynashard, Entity, Key, Registry, new_id
from dynashard.errors import DeclarationError
from dynashard.schema import IDEMPOTENCY_KEY, IDEMPOTENCY_TTL
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_serving.api.app import build_app
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.api.quotas import Quotas
from dynashard_serving.declare import (
    Exposed,
    FamilyListing,
    Quota,
    ServedCounter,
    ServedEdges,
    ServedRollUps,
    endpoint,
    serve,
)
from dynashard_serving.domain import domain_of
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import KEYS, TOPOLOGY, idempotency_table, settings_of
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.recording import RecordingTransport
from tests.roles import as_function

pytestmark = pytest.mark.engine

TEN = Quota(10, seconds=60)


class Note(Entity, name="quota.v1.Note", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str = new_id()
    text: str = ""


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counters(dynamodb: RawDynamoDB) -> Iterator[str]:
    with idempotency_table(dynamodb) as table:
        yield table


@pytest.fixture
def caller_with(transport: Transport, table: str, counters: str) -> Callable[[Quota], Caller]:
    def caller(quota: Quota) -> Caller:
        allowed = as_function("api", transport, table, TOPOLOGY, counters)
        backend = Dynashard(allowed, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
        domain = domain_of(Exposed(Note, "notes", quota=quota))
        return Caller(build_app(settings_of(table, counters), allowed, domain=domain, backend=backend))

    return caller


@pytest.mark.parametrize("requests", [1, 7, 10, 100, 1000])
def test_one_process_admits_exactly_the_quota(transport: Transport, counters: str, clock: Clock, requests: int) -> None:
    quotas, quota = Quotas(counters, transport, clock), Quota(requests)

    admitted = [quotas.take("notes", "abc", quota).admitted for _ in range(requests + 20)]

    assert admitted == [True] * requests + [False] * 20


@pytest.mark.parametrize("requests", [1, 3, 40, 500])
def test_no_number_of_processes_and_threads_admits_more(
    transport: Transport, counters: str, clock: Clock, requests: int
) -> None:
    processes = [Quotas(counters, transport, clock) for _ in range(8)]
    quota = Quota(requests)

    def ask(number: int) -> bool:
        return processes[number % 8].take("notes", "abc", quota).admitted

    with ThreadPoolExecutor(8) as pool:
        admitted = sum(pool.map(ask, range(2 * requests + 64)))

    # What a process has taken and not used is lost: at most a twentieth for each.
    assert requests - 8 * (requests // 20) <= admitted <= requests


def test_a_used_quota_costs_nothing_until_the_next_window(transport: Transport, counters: str, clock: Clock) -> None:
    recording = RecordingTransport(transport)
    quotas = Quotas(counters, recording, clock)
    while quotas.take("notes", "abc", TEN).admitted:
        pass
    recording.clear()

    refused = [quotas.take("notes", "abc", TEN) for _ in range(50)]
    clock.now += refused[0].seconds
    again = quotas.take("notes", "abc", TEN)

    assert not any(each.admitted for each in refused)
    assert again.admitted
    assert len(recording.requests) == 1


def test_a_quota_that_a_new_release_lowers_leaves_nothing(transport: Transport, counters: str, clock: Clock) -> None:
    before = Quotas(counters, transport, clock)
    for _ in range(100):
        before.take("notes", "abc", Quota(100))

    standing = Quotas(counters, transport, clock).take("notes", "abc", TEN)

    assert (standing.admitted, standing.left) == (False, 0)


def test_a_large_quota_takes_few_writes(transport: Transport, counters: str, clock: Clock) -> None:
    recording = RecordingTransport(transport)
    quotas, quota = Quotas(counters, recording, clock), Quota(1000)

    admitted = sum(quotas.take("notes", "abc", quota).admitted for _ in range(1000))

    assert admitted == 1000
    assert len(recording.requests) <= 40


def test_tenants_resources_and_windows_have_counters_of_their_own(
    transport: Transport, counters: str, clock: Clock
) -> None:
    quotas, one = Quotas(counters, transport, clock), Quota(1)

    assert [quotas.take(*each, one).admitted for each in (("notes", "a"), ("notes", "b"), ("users", "a"))] == [True] * 3
    assert not quotas.take("notes", "a", one).admitted


def test_a_counter_expires(transport: Transport, counters: str, clock: Clock) -> None:
    Quotas(counters, transport, clock).take("notes", "abc", TEN)

    [counter] = transport.call("Scan", {"TableName": counters})["Items"]

    assert counter[IDEMPOTENCY_KEY]["S"].startswith("quota#notes#")
    assert 0 < int(counter[IDEMPOTENCY_TTL]["N"]) - clock.now <= 2 * 3600


def test_requests_are_admitted_while_the_counter_cannot_be_reached(transport: Transport, clock: Clock) -> None:
    quotas = Quotas("no-such-table", transport, clock)

    standing = [quotas.take("notes", "abc", Quota(1)) for _ in range(5)]

    assert all(each.admitted and each.left is None for each in standing)


def test_requests_are_admitted_while_the_counter_is_damaged(
    transport: Transport, counters: str, clock: Clock, dynamodb: RawDynamoDB
) -> None:
    Quotas(counters, transport, clock).take("notes", "abc", TEN)
    [row] = dynamodb.call("Scan", TableName=counters)["Items"]
    dynamodb.call("PutItem", TableName=counters, Item={**row, "taken": {"S": "many"}})

    standing = Quotas(counters, transport, clock).take("notes", "abc", TEN)

    assert (standing.admitted, standing.left) == (True, None)


def test_answers_name_the_policy_and_what_is_left(caller_with: Callable[[Quota], Caller]) -> None:
    caller = caller_with(TEN)

    created = caller.post("/v1/notes", {"text": "one"})
    missing = caller.get("/v1/notes/none")
    listed = caller.get("/v1/notes")

    for answer, left in ((created, 9), (missing, 8), (listed, 7)):
        assert answer.headers["ratelimit-policy"] == '"notes";q=10;w=60;qu="requests"'
        found = re.fullmatch(r'"notes";r=(\d+);t=(\d+)', answer.headers["ratelimit"])
        assert found, answer.headers
        assert int(found[1]) == left
        assert 1 <= int(found[2]) <= 60
    assert missing.status == 404


def test_the_request_after_the_last_is_refused_with_the_time_to_wait(caller_with: Callable[[Quota], Caller]) -> None:
    caller = caller_with(Quota(3, seconds=86_400))

    answers = [caller.get("/v1/notes") for _ in range(5)]

    assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
    refused = answers[-1]
    assert refused.code == "quota_exceeded"
    assert refused.headers["ratelimit"].startswith('"notes";r=0;t=')
    assert refused.headers["retry-after"] == refused.headers["ratelimit"].rpartition("t=")[2]
    assert caller.of("other").get("/v1/notes").status == 200


def test_a_batch_counts_as_its_requests(caller_with: Callable[[Quota], Caller]) -> None:
    caller = caller_with(Quota(10, seconds=86_400))
    requests = [{"operation": "create", "item": {"text": str(number)}} for number in range(6)]

    first, second = (caller.post("/v1/notes/batch", {"requests": requests}) for _ in range(2))

    assert (first.status, second.status) == (200, 429)
    assert caller.get("/v1/notes/count").json == {"count": 6, "exact": True}


def test_a_batch_of_more_requests_than_the_quota_is_refused(caller_with: Callable[[Quota], Caller]) -> None:
    caller = caller_with(Quota(10, seconds=86_400))
    requests = [{"operation": "create", "item": {"text": str(number)}} for number in range(11)]

    larger = caller.post("/v1/notes/batch", {"requests": requests})
    again = caller.post("/v1/notes/batch", {"requests": requests[:10]})

    assert (larger.status, larger.fields) == (422, {"requests": "out_of_range"})
    assert (again.code, "9 of these are left" in again.json["detail"]) == ("quota_exceeded", True)
    assert caller.get("/v1/notes/count").json == {"count": 0, "exact": True}


@pytest.mark.parametrize("body", [{"requests": []}, {"requests": "x"}, {}, []], ids=str)
def test_a_batch_that_is_none_counts_as_one_request(caller_with: Callable[[Quota], Caller], body: Any) -> None:
    refused = caller_with(TEN).post("/v1/notes/batch", body)

    assert refused.status == 422
    assert refused.headers["ratelimit"].startswith('"notes";r=9;t=')


def test_a_batch_whose_body_cannot_be_read_counts_as_one_request(caller_with: Callable[[Quota], Caller]) -> None:
    caller = caller_with(TEN)

    malformed = caller.post("/v1/notes/batch", body=b"{not json", headers={"content-type": "application/json"})
    untyped = caller.post("/v1/notes/batch", body=b"{}", headers={"content-type": "text/plain"})

    assert [malformed.code, untyped.code] == ["malformed_body", "unsupported_media_type"]
    assert [each.headers.get("ratelimit", "")[:12] for each in (malformed, untyped)] == ['"notes";r=9;', '"notes";r=8;']


def test_resources_without_a_quota_have_no_such_headers(transport: Transport, table: str) -> None:
    allowed = as_function("api", transport, table, TOPOLOGY)
    backend = Dynashard(allowed, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    domain = domain_of(Exposed(Note, "notes"))
    caller = Caller(build_app(settings_of(table), allowed, domain=domain, backend=backend))

    assert "ratelimit-policy" not in caller.get("/v1/notes").headers


def test_the_document_names_the_headers_of_a_quota() -> None:
    document = document_of(domain_of(Exposed(Note, "notes", quota=TEN)))

    assert "RateLimit" in document["paths"]["/v1/notes"]["get"]["responses"]["200"]["headers"]


class Wanted(BaseModel):
    """A request."""


class Sum(BaseModel):
    """An answer."""

    total: int = 0


@endpoint("sums", quota=Quota(1, seconds=86_400))
def sums(db: Dynashard, tenant_id: str, wanted: Wanted) -> Sum:
    """Sum something up."""
    del db, tenant_id, wanted
    return Sum()


@serve(path="notes", quota=Quota(1, seconds=86_400))
class Read(Note, name="quota.v1.Read", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """A note with a read about it."""


@endpoint("length", of=Read)
def length(db: Dynashard, note: Read, wanted: Wanted) -> Sum:
    """Measure a note."""
    del db, wanted
    return Sum(total=len(note.text))


ONE: Final = Quota(1, seconds=86_400)
SERVED: Final[dict[str, Any]] = {
    "/v1/numbers/premiere": ServedCounter(Seats, path="numbers", quota=ONE),
    "/v1/links?of=User.1": ServedEdges(FOLLOWS, path="links", verb="follow", quota=ONE),
    "/v1/links/counts?of=User.1": ServedEdges(FOLLOWS, path="links", verb="follow", quota=ONE),
    "/v1/spans": ServedRollUps(PLAYS, path="spans", name="Spans", quota=ONE),
    "/v1/contents": FamilyListing((ContactMethod, NotificationRule), path="contents", quota=ONE),
    "/v1/sums": sums,
    "/v1/notes/none/length": Read,
}
"""What is served with a quota, by an address of it."""
BESIDE: Final[dict[str, Any]] = {
    "/v1/contents": (ContactMethod, NotificationRule),
    "/v1/notes/none/length": (length,),
}
"""What else the domain declares."""


@pytest.mark.parametrize("address", SERVED)
def test_all_that_is_served_can_have_a_quota(transport: Transport, table: str, counters: str, address: str) -> None:
    allowed = as_function("api", transport, table, TOPOLOGY, counters)
    backend = Dynashard(allowed, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    domain = domain_of(SERVED[address], *BESIDE.get(address, ()))
    caller = Caller(build_app(settings_of(table, counters), allowed, domain=domain, backend=backend))
    path, _, query = address.partition("?")

    first, second = (caller.get(path, query=query) for _ in range(2))

    name = path.split("/")[2]
    assert first.status != 429
    assert first.headers["ratelimit-policy"] == f'"{name}";q=1;w=86400;qu="requests"'
    assert (second.status, second.code) == (429, "quota_exceeded")
    paths = document_of(domain)["paths"]
    described = [each for under, methods in paths.items() if under.split("/")[2] == name for each in methods.values()]
    answers = [next(iter(each["responses"].values())) for each in described if isinstance(each, dict)]
    assert answers
    assert all("RateLimit" in answer["headers"] for answer in answers)


def test_a_read_about_items_has_the_quota_of_its_entity() -> None:
    def size(db: Dynashard, note: Read, wanted: Wanted) -> Sum:
        """Measure it again."""
        raise NotImplementedError

    with pytest.raises(DeclarationError, match="the quota is that of the entity: write it at serve"):
        endpoint("size", of=Read, quota=TEN)(size)


@pytest.mark.parametrize(
    "declare",
    [
        lambda quota: ServedCounter(Seats, path="numbers", quota=quota),
        lambda quota: ServedEdges(FOLLOWS, path="links", verb="follow", quota=quota),
        lambda quota: ServedRollUps(PLAYS, path="spans", name="Spans", quota=quota),
        lambda quota: FamilyListing((ContactMethod,), path="contents", quota=quota),
        lambda quota: endpoint("other", quota=quota)(sums),
    ],
)
def test_no_quota_is_taken_that_counts_nothing(declare: Callable[[Quota], object]) -> None:
    with pytest.raises(DeclarationError, match="its quota is"):
        declare(Quota(0))


@pytest.mark.parametrize("quota", [Quota(0), Quota(5, 0), Quota(2.5), 600])  # type: ignore[arg-type]
def test_a_quota_is_of_whole_numbers(quota: Quota) -> None:
    with pytest.raises(DeclarationError, match="its quota is"):
        Exposed(Note, "notes", quota=quota)
