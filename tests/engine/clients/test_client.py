"""The client: the same behaviour over direct invocation and over REST."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from domain.samples.articles import Article
from domain.samples.incidents import Incident
from domain.samples.schedules import Layer
from domain.samples.teams import Schedule, Shift
from domain.samples.users import User, UserStatus
from dynashard.testing.faults import FaultyTransport, throttled
from dynashard.transport import Transport
from dynashard_client import Client, Create, Delete, Get, Items, Put, Update
from dynashard_client.errors import (
    AlreadyExistsError,
    ConfigurationError,
    DynashardError,
    EngineUnavailableError,
    InvalidCursorError,
    InvalidQueryError,
    ItemTooLargeError,
    KeyRangeThrottledError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
    TableThrottledError,
    ValidationFailedError,
)
from tests.engine.api.api_on_engine import idempotency_table
from tests.engine.clients.clients_on_engine import RESOURCES, WAYS, Served, lambda_client, served
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = [pytest.mark.engine, pytest.mark.sampled(2)]


@pytest.fixture(scope="module")
def wire(transport: Transport) -> FaultyTransport:
    return FaultyTransport(transport)


@pytest.fixture(scope="module")
def backend(wire: FaultyTransport, create_table: Any, dynamodb: RawDynamoDB) -> Iterator[Served]:
    with idempotency_table(dynamodb) as records, served(wire, create_table(), records) as serving:
        yield serving


@pytest.fixture(params=WAYS)
def client(request: pytest.FixtureRequest, backend: Served, tenant: str) -> Iterator[Client]:
    backend.pauses.clear()
    backend.network.plan.clear()
    with backend.client(request.param, tenant) as opened:
        yield opened


@pytest.fixture
def users(client: Client) -> Items[User]:
    return client.collection(User)


def a_user(tenant: str, **fields: Any) -> User:
    return User(**{"tenant_id": tenant, "email": "ada@example.com", "display_name": "Ada", **fields})


def test_any_revision_is_a_condition_that_a_missing_item_does_not_meet(users: Items[User], tenant: str) -> None:
    with pytest.raises(RevisionMismatchError):
        users.put(a_user(tenant, id="any"), if_match="*")
    users.create(a_user(tenant, id="any"))

    assert users.update("any", {"department": "maths"}, if_match="*").department == "maths"
    assert users.put(a_user(tenant, id="any"), if_match="*").created is False
    users.delete("any", if_match="*")


@pytest.mark.parametrize("way", ["rest"])
def test_a_key_that_no_path_can_carry_does_not_reach_another_item(backend: Served, tenant: str, way: Any) -> None:
    with backend.client(way, tenant) as client:
        users, shifts = client.collection(User), client.collection(Shift)
        users.create(a_user(tenant, id="known"))

        for wrong in ("known?x", "", ".", ".."):
            with pytest.raises(ValidationFailedError) as refused:
                users.delete(wrong)
            assert [(each.field, each.code) for each in refused.value.errors] == [("id", "unaddressable")]
        for team in ("..", "a/b"):
            with pytest.raises(ValidationFailedError, match="team_id"):
                shifts.delete({"team_id": team, "schedule_id": "users", "shift_id": "known"})

        assert users.get("known").id == "known"


def test_item_is_created_read_replaced_patched_and_deleted(users: Items[User], tenant: str) -> None:
    created = users.create(a_user(tenant, id="ada"))
    put = users.put(created.model_copy(update={"display_name": "Countess"}), if_match=created.revision)
    patched = users.update({"id": "ada"}, {"department": "maths", "status": UserStatus.DISABLED})

    assert created.revision
    assert (put.created, put.item.display_name, put.item.created_at) == (False, "Countess", created.created_at)
    assert (patched.department, patched.status, patched.display_name) == ("maths", UserStatus.DISABLED, "Countess")
    read = users.get(patched, consistent=True)
    assert (read, read.revision) == (patched, patched.revision)
    users.delete(read, if_match=read.revision)
    assert users.find({"id": "ada"}) is None


def test_some_fields_of_an_item_are_read_alone(users: Items[User], tenant: str) -> None:
    users.create(a_user(tenant, id="ada"))

    assert users.get("ada", fields=["id", "status"]) == {"id": "ada", "status": UserStatus.ACTIVE}
    with pytest.raises(ValidationFailedError, match="fields"):
        users.get("ada", fields=["shoe_size"])
    with pytest.raises(NotFoundError):
        users.get("bob", fields=["id"])


def test_edges_are_called_by_their_resource_name_over_lambda(backend: Served, tenant: str) -> None:
    backend.network.plan.clear()
    ends = {"node": "User.9", "other": "Actor.5"}
    with backend.client("lambda", tenant) as client:
        edge = client.call("create", "follows", {"item": ends})
        backend.network.plan.append(500)
        listed = client.call("list", "follows", {"of": "User.9"})
        client.call("delete", "follows", {"key": ends})
        with pytest.raises(NotFoundError):
            client.call("get", "follows", {"key": ends})
    with backend.client("rest", tenant) as client, pytest.raises(ConfigurationError):
        client.call("list", "follows", {"of": "User.9"})

    assert listed == {"items": [edge], "cursor": None}


def test_a_put_reports_whether_it_created(users: Items[User], tenant: str) -> None:
    assert [users.put(a_user(tenant, id="ada")).created for _ in range(2)] == [True, False]


def test_refusals_are_the_layers_own_errors(users: Items[User], client: Client, tenant: str) -> None:
    first = users.create(a_user(tenant, id="ada"))
    users.update({"id": "ada"}, {"display_name": "Countess"})

    with pytest.raises(AlreadyExistsError):
        users.create(a_user(tenant, id="ada"))
    with pytest.raises(NotFoundError):
        users.get({"id": "bob"})
    with pytest.raises(NotFoundError):
        users.delete({"id": "bob"})
    for change in (
        lambda: users.put(first, if_match=first.revision),
        lambda: users.update(first, {"display_name": "x"}, if_match=first.revision),
        lambda: users.delete(first, if_match=first.revision),
    ):
        with pytest.raises(RevisionMismatchError):
            change()
    with pytest.raises(ValidationFailedError) as refused:
        users.update({"id": "ada"}, {"email": "nobody", "shoe_size": 7})
    assert {error.field for error in refused.value.errors} == {"email", "shoe_size"}
    with pytest.raises(ItemTooLargeError) as large:
        client.collection(Article).put(an_article(tenant, text="x" * 409_200))
    assert large.value.details["limit"]


def test_a_client_over_lambda_states_for_whom_it_asks(backend: Served, tenant: str) -> None:
    with backend.client("lambda", tenant) as service:
        service.collection(User).create(a_user(tenant, id="u1", manager_id="grace"))

    def read(subject: str, *scopes: str) -> User:
        return read_as({"subject": subject, "scopes": list(scopes)})

    def read_as(caller: Mapping[str, Any] | Literal["service"]) -> User:
        client = Client.lambda_(
            "commands", tenant=tenant, client=lambda_client(backend.url), resources=RESOURCES, caller=caller
        )
        with client as opened:
            found: User = opened.collection(User).get("u1")
            return found

    assert read("grace", "users:read").id == read_as("service").id == "u1"
    with pytest.raises(NotFoundError):
        read("eve", "users:read")
    with pytest.raises(DynashardError) as refused:
        read("grace")
    assert refused.value.code == "insufficient_scope"


def test_reused_key_and_foreign_tenant_are_refused(users: Items[User], tenant: str) -> None:
    first = users.create(a_user(tenant), idempotency_key="k-1")

    with pytest.raises(DynashardError) as reused:
        users.create(a_user(tenant, display_name="Other"), idempotency_key="k-1")
    assert reused.value.code == "idempotency_key_reused"
    for foreign in (lambda: users.create(a_user("xyz")), lambda: users.put(a_user("xyz"))):
        with pytest.raises(ValidationFailedError, match="tenant_id"):
            foreign()
    with pytest.raises(ValidationFailedError, match="tenant_id"):
        users.get(a_user("xyz"))
    with pytest.raises(ValidationFailedError, match="tenant_id"):
        users.delete({"tenant_id": "xyz", "id": first.id})
    assert users.get(first) == first


def test_listings_are_paged_in_order_and_both_ways(users: Items[User], tenant: str) -> None:
    users.batch_write(put=[a_user(tenant, id=f"{n:02d}", department="ab"[n % 2]) for n in range(9)])

    page = users.list(order="ordered", limit=4)
    rest = list(users.items(order="ordered", limit=4, cursor=page.cursor))
    backwards = [user.id for user in users.items(order="ordered", direction="desc", limit=3)]

    assert [user.id for user in [*page.items, *rest]] == [f"{n:02d}" for n in range(9)]
    assert backwards == [f"{n:02d}" for n in reversed(range(9))]
    assert sorted(user.id for user in users.items(limit=4)) == [f"{n:02d}" for n in range(9)]
    assert [user.id for user in users.items(order="ordered", start="03", end="06")] == ["03", "04", "05"]
    assert [user.id for user in users.items(order="ordered", prefix="07")] == ["07"]
    assert users.count() == 9
    assert users.count({"department": "a"}, index="by_department") == 5
    assert users.count(filters={"status": UserStatus.DISABLED}) == 0
    assert users.list(order="ordered", fields=["id", "status"], limit=1).items == [
        {"id": "00", "status": UserStatus.ACTIVE}
    ]


def test_index_looks_an_item_up_by_the_field_of_its_sort_key(users: Items[User], tenant: str) -> None:
    users.batch_write(put=[a_user(tenant, id=name, email=f"{name}@example.com") for name in ("ada", "ad")])

    [found] = users.items(index="by_email", sort={"email": "ada@example.com"})

    assert found.id == "ada"


def an_article(tenant: str, year: int = 2017, **fields: Any) -> Article:
    at = datetime(year, 5, 4, tzinfo=UTC)
    return Article(**{"tenant_id": tenant, "author": "parth", "title": "Sharding", "published_at": at, **fields})


def test_several_partitions_are_listed_as_one(client: Client, tenant: str) -> None:
    articles = client.collection(Article)
    articles.batch_write(put=[an_article(tenant, year, title=f"In {year}") for year in (2015, 2016, 2017)])

    asked = {"author": "parth", "year": [2015, 2017]}
    found = list(articles.items(asked, index="by_date", order="ordered", direction="desc", limit=1))

    assert [article.title for article in found] == ["In 2017", "In 2015"]
    assert articles.count(asked) == 2
    assert articles.get({"author": "parth", "year": 2016, "slug": "in-2016"}).year == 2016


def test_keys_of_several_fields_address_one_item(client: Client, tenant: str) -> None:
    shifts = client.collection(Shift)
    hours = [datetime(2026, 11, 21, hour, tzinfo=UTC) for hour in (8, 16)]
    shift = Shift(tenant_id=tenant, team_id="t1", schedule_id="s 1", user_id="ü", starts_at=hours[0], ends_at=hours[1])

    created = shifts.create(shift)

    assert shifts.get(created) == created
    assert [each.shift_id for each in shifts.items(sort={"team_id": "t1", "schedule_id": "s 1"})] == [shift.shift_id]


def test_bad_cursor_and_bad_listing_are_refused(users: Items[User]) -> None:
    with pytest.raises(InvalidCursorError):
        users.list(cursor="forged")
    with pytest.raises(ValidationFailedError):
        users.list(index="by_nothing")
    with pytest.raises(ValidationFailedError):
        users.list(limit=0)
    with pytest.raises(InvalidQueryError, match=r"filter is not an argument of listings; write filters=\{"):
        users.count(filter={})


def test_batches_have_an_outcome_for_each(users: Items[User], tenant: str) -> None:
    put, gone = users.batch_write(
        put=[a_user(tenant, id="1"), a_user("xyz", id="2"), a_user(tenant, id="3")], delete=[{"id": "9"}]
    )
    read = users.batch_get([{"id": "3"}, {"id": "2"}, {"id": "1"}])

    assert [outcome.ok for outcome in put] == [True, False, True]
    assert isinstance(put[1].error, ValidationFailedError)
    assert [outcome.ok for outcome in gone] == [True]
    assert [outcome.item and outcome.item.id for outcome in read] == ["3", None, "1"]
    assert isinstance(read[1].error, NotFoundError)


def test_a_throttled_request_is_retried_after_the_delay_of_the_backend(
    users: Items[User], backend: Served, wire: FaultyTransport, tenant: str
) -> None:
    created = users.create(a_user(tenant))
    wire._plan[:] = [throttled("GetItem", nth=wire.sent("GetItem") + nth) for nth in (1, 2)]
    wire._struck.clear()

    assert users.get(created) == created
    assert not wire.waiting
    assert backend.pauses == [1.1, 1.2]


def test_lasting_throttling_raises_its_own_error(
    users: Items[User], backend: Served, wire: FaultyTransport, tenant: str
) -> None:
    wire._plan[:] = [throttled("GetItem", nth=None)]
    wire._struck.clear()

    with pytest.raises((KeyRangeThrottledError, TableThrottledError, DynashardError)) as raised:
        users.get(a_user(tenant))
    wire._plan.clear()

    assert (raised.value.status, raised.value.retryable) == (429, True)
    assert len(backend.pauses) == 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("status", [502, 503, 504])
def test_create_whose_answer_was_lost_is_done_once(
    users: Items[User], backend: Served, tenant: str, status: int
) -> None:
    backend.network.plan[:] = [status, status]

    created = users.create(a_user(tenant))

    assert backend.network.plan == []
    assert list(users.items()) == [created]
    assert backend.pauses == [0.1, 0.2]


def test_delete_whose_answer_was_lost_is_unknown_and_not_repeated(
    users: Items[User], backend: Served, tenant: str
) -> None:
    created = users.create(a_user(tenant))
    backend.network.plan[:] = [503]
    before = backend.network.requests

    with pytest.raises(OutcomeUnknownError):
        users.delete(created, if_match=created.revision)

    assert backend.network.requests - before == 1


def test_guarded_change_whose_answer_was_lost_is_not_repeated(users: Items[User], backend: Served, tenant: str) -> None:
    created = users.create(a_user(tenant))
    changed = created.model_copy(update={"display_name": "Countess"})
    backend.network.plan[:] = [503]

    with pytest.raises(EngineUnavailableError, match="may have been done"):
        users.put(changed, if_match=created.revision)

    assert users.get(created).display_name == "Countess"
    assert backend.pauses == []


def test_change_without_a_guard_is_not_repeated(users: Items[User], backend: Served, tenant: str) -> None:
    """A repetition could undo later writes of others."""
    created = users.create(a_user(tenant))
    backend.network.plan[:] = [502]
    before = backend.network.requests

    with pytest.raises(OutcomeUnknownError):
        users.update(created, {"display_name": "Countess"})

    assert backend.network.requests - before == 1


def test_a_request_to_a_busy_gateway_is_retried(users: Items[User], backend: Served, tenant: str) -> None:
    created = users.create(a_user(tenant))
    backend.network.plan[:] = [429]

    assert users.get(created) == created


def test_a_missing_answer_is_reported(users: Items[User], backend: Served) -> None:
    backend.network.plan[:] = [503] * 5

    with pytest.raises(EngineUnavailableError):
        users.get({"id": "1"})

    assert len(backend.pauses) == 4


def test_details_are_read_on_request_and_stay_when_they_are_omitted(client: Client, tenant: str) -> None:
    incidents = client.collection(Incident)
    incidents.create(Incident(tenant_id=tenant, id="i1", number=1, title="Slow", details={"log": [1, None]}))

    [listed] = incidents.list().items
    incidents.put(listed.model_copy(update={"title": "Slower"}))
    incidents.update({"id": "i1"}, {"status": "LOOKED_AT"})
    full = incidents.get({"id": "i1"}, include=["details"])

    assert "details" not in listed.model_fields_set
    assert (full.title, full.status, full.details) == ("Slower", "LOOKED_AT", {"log": [1, None]})
    with pytest.raises(ValidationFailedError, match="include"):
        incidents.get({"id": "i1"}, include=["title"])


@pytest.mark.sampled(4)
def test_pages_of_large_items_are_short(client: Client, tenant: str) -> None:
    schedules = client.collection(Schedule)
    layer = Layer(users=["x" * 200] * 50, starts_at=datetime(2026, 11, 21, tzinfo=UTC))
    many = [
        Schedule(tenant_id=tenant, team_id="red", schedule_id=f"{n:02d}", name="Day", layers=[layer] * 10)
        for n in range(70)
    ]
    # More than one answer holds, written in requests that each fit.
    for some in (many[:35], many[35:]):
        outcomes, _ = schedules.batch_write(put=some)
        assert all(outcome.ok for outcome in outcomes)

    pages = list(schedules.pages(limit=400))

    assert len(pages) > 1
    assert [each.schedule_id for page in pages for each in page.items] == [each.schedule_id for each in many]
    read = schedules.batch_get(many)
    assert all(outcome.ok for outcome in read)


def test_filters_have_operators(users: Items[User], tenant: str) -> None:
    for name, department in (("ada", "legal"), ("bob", "sales, north"), ("eve", None)):
        users.create(a_user(tenant, id=name, email=f"{name}@example.com", department=department))

    def found(**filters: Any) -> list[str]:
        chosen = sorted(user.id for user in users.items(filters=filters))
        assert users.count(filters=filters) == len(chosen)
        return chosen

    assert found(department={"exists": True, "ne": "legal"}) == ["bob"]
    assert found(department={"in": ["legal"]}) == ["ada"]
    assert found(department={"in": ["sales, north"]}) == ["bob"]
    assert found(department={"in": ["legal", "sales, north"]}, status=UserStatus.ACTIVE) == ["ada", "bob"]
    assert found(department={"prefix": "sal"}) == ["bob"]
    assert [user.id for user in users.items(sort={"email": {"gte": "bob", "lt": "c"}})] == ["bob"]


def test_a_count_up_to_a_number_says_whether_it_is_exact(users: Items[User], tenant: str) -> None:
    for name in "abc":
        users.create(a_user(tenant, id=name))

    counts = [users.count(), users.count(up_to=3), users.count(up_to=2)]

    assert [(int(count), count.exact) for count in counts] == [(3, True), (3, True), (2, False)]


def test_a_batch_of_all_operations_has_an_outcome_for_each(users: Items[User], tenant: str) -> None:
    known = users.create(a_user(tenant, id="known"))

    outcomes = users.batch(
        [
            Get("known", consistent=True),
            Get("missing"),
            Create(a_user(tenant, id="new")),
            Put(a_user(tenant, id="put"), if_match="wrong"),
            Update("known", [{"op": "replace", "path": "/display_name", "value": "K"}], if_match=known.revision),
            Delete("gone"),
        ]
    )

    assert [outcome.error and outcome.error.code for outcome in outcomes] == [
        *(None, "not_found", None, "revision_mismatch", None, "not_found")
    ]
    assert [outcome.item.id for outcome in outcomes if outcome.item] == ["known", "new", "known"]
    assert users.get("known").display_name == "K"


def test_a_batch_is_divided_into_as_many_as_needed(users: Items[User], backend: Served, tenant: str) -> None:
    backend.network.requests = 0

    outcomes = users.batch([Create(a_user(tenant, id=f"{number:03d}")) for number in range(250)])

    assert all(outcome.ok for outcome in outcomes)
    assert users.count() == 250
    assert backend.network.requests in (0, 4)


def test_batches_take_one_request_for_a_hundred(users: Items[User], backend: Served, tenant: str) -> None:
    backend.network.requests = 0
    written, _ = users.batch_write(put=[a_user(tenant, id=f"{number:03d}") for number in range(100)])

    read = users.batch_get([f"{number:03d}" for number in range(101)])

    assert all(outcome.ok and outcome.item is None for outcome in written)
    assert [outcome.ok for outcome in read] == [*[True] * 100, False]
    assert backend.network.requests in (0, 3)


def test_threads_share_a_client_and_its_connections(backend: Served, tenant: str) -> None:
    backend.network.reset()
    with backend.client("rest", tenant) as client, ThreadPoolExecutor(4) as threads:
        users = client.collection(User)
        users.create(a_user(tenant, id="ada"))
        read = list(threads.map(lambda _: users.get("ada").id, range(40)))

    assert read == ["ada"] * 40
    assert len(backend.network.peers) <= 5


def test_a_batch_whose_answer_was_lost_is_sent_again_only_if_that_is_safe(backend: Served, tenant: str) -> None:
    backend.network.plan.clear()
    with backend.client("rest", tenant) as client:
        users = client.collection(User)
        backend.network.plan = [502]
        [created] = users.batch([Create(a_user(tenant, id="once"))])
        backend.network.plan = [502]
        with pytest.raises(OutcomeUnknownError):
            users.batch([Put(a_user(tenant, id="unknown"))])

        assert created.ok
        assert users.count() == 2
