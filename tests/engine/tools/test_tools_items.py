"""`dynashard get`, `list`, `put` and `delete`: the operations of REST in a shell."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import orjson
import pytest
from moto import mock_aws

from domain.samples.follows import FOLLOWS
from domain.samples.users import User
from dynashard import Dynashard
from dynashard.schema import PK, SK
from dynashard.service import Collection
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns import EdgeStore
from tests.domain_served import ENTITIES
from tests.engine.command_line import CURSOR_KEYS, CommandLine

pytestmark = pytest.mark.engine

Users = Collection[User]
ADA = {"id": "ada", "email": "ada@example.com", "display_name": "Ada Lovelace"}


@pytest.fixture
def account(command_line: CommandLine, engine_url: str) -> Iterator[CommandLine]:
    """The command line with an account whose DynamoDB is the engine, set by botocore's own variable."""
    with mock_aws():
        keys = {name: os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        variables = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL_DYNAMODB": engine_url}
        yield replace(command_line, environment={**keys, **variables})


@pytest.fixture
def ada(users: Users, tenant: str) -> User:
    return users.create(User(tenant_id=tenant, **ADA))


def test_get_prints_the_item_with_its_revision(command_line: CommandLine, ada: User) -> None:
    ended = command_line.run("get", "users", f"tenant_id={ada.tenant_id}", "id=ada")

    assert (ended.status, ended.err) == (0, "")
    assert ended.summary == {**json.loads(ada.model_dump_json()), "revision": ada.revision}
    assert len(ended.out.splitlines()) == 1


def test_the_command_line_says_that_it_asks_for_itself(command_line: CommandLine, ada: User) -> None:
    strict = replace(command_line, environment={**command_line.environment, "CALLER_REQUIRED": "true"})

    assert strict.run("get", "users", f"tenant_id={ada.tenant_id}", "id=ada").status == 0
    assert len(strict.run("list", "users", f"tenant_id={ada.tenant_id}").out.splitlines()) == 1


def test_a_missing_item_is_reported_in_one_line(command_line: CommandLine, tenant: str) -> None:
    ended = command_line.run("get", "user.v1.User", f"tenant_id={tenant}", "id=nobody")

    assert (ended.status, ended.out, len(ended.err.splitlines())) == (1, "", 1)
    assert ended.err.endswith("does not exist (not_found)\n")


def test_put_takes_json_as_an_argument(command_line: CommandLine, users: Users, tenant: str) -> None:
    ended = command_line.run("put", "users", f"tenant_id={tenant}", json.dumps(ADA))

    stored = users.get({"tenant_id": tenant, "id": "ada"})
    assert (ended.status, ended.err) == (0, "")
    assert ended.summary["revision"] == stored.revision
    assert (stored.email, stored.display_name) == (ADA["email"], ADA["display_name"])


@pytest.mark.parametrize("arguments", [["-"], ["--file", "-"]])
def test_put_takes_json_from_standard_input(
    command_line: CommandLine, users: Users, tenant: str, arguments: list[str]
) -> None:
    ended = command_line.run("put", "users", f"tenant_id={tenant}", *arguments, stdin=orjson.dumps(ADA))

    assert ended.status == 0, ended.err
    assert users.get({"tenant_id": tenant, "id": "ada"}).email == ADA["email"]


def test_put_takes_json_from_a_file_that_names_its_tenant(command_line: CommandLine, users: Users, tenant: str) -> None:
    file = command_line.file("ada.json", {**ADA, "tenant_id": tenant})

    ended = command_line.run("put", "users", "--file", file)

    assert ended.status == 0, ended.err
    assert users.get({"tenant_id": tenant, "id": "ada"}).email == ADA["email"]


def test_put_takes_fields_one_by_one_with_their_own_types(command_line: CommandLine, tenant: str) -> None:
    fields = ["account_id=x", "number=7", "title=Errors=5", "team=team_1", 'participants=["team_1","team_2"]']

    ended = command_line.run("put", "incidents", f"tenant_id={tenant}", "id=i7", *fields[1:])

    assert ended.status == 0, ended.err
    assert (ended.summary["number"], ended.summary["title"]) == (7, "Errors=5")
    assert ended.summary["participants"] == ["team_1", "team_2"]


def test_the_output_of_get_can_be_put_back_unless_the_item_has_changed(
    command_line: CommandLine, users: Users, ada: User
) -> None:
    key = [f"tenant_id={ada.tenant_id}", "id=ada"]
    read = command_line.run("get", "users", *key)
    revision = read.summary["revision"]
    changed = orjson.dumps({**read.summary, "department": "engines"})

    first = command_line.run("put", "users", "-", "--if-match", f'"{revision}"', stdin=changed)
    second = command_line.run("put", "users", "-", "--if-match", revision, stdin=changed)

    assert first.status == 0, first.err
    assert first.summary["department"] == "engines"
    assert (second.status, second.out) == (1, "")
    assert second.err.endswith("(revision_mismatch)\n")
    assert users.get(key_of(ada)).revision == first.summary["revision"]


def test_delete_deletes_only_the_revision_it_names(command_line: CommandLine, users: Users, ada: User) -> None:
    key = [f"tenant_id={ada.tenant_id}", "id=ada"]

    refused = command_line.run("delete", "users", *key, "--if-match", "stale")
    kept = users.find(key_of(ada))
    done = command_line.run("delete", "users", *key, "--if-match", str(ada.revision))

    assert refused.status == 1
    assert refused.err.endswith("(revision_mismatch)\n")
    assert kept == ada
    assert (done.status, done.out, done.err) == (0, "", "")
    assert users.find(key_of(ada)) is None


def test_a_listing_continues_with_its_cursor(command_line: CommandLine, users: Users, tenant: str) -> None:
    users.batch_write(put=[User(tenant_id=tenant, **{**ADA, "id": f"u{n}"}) for n in range(5)])
    asked = ["list", "users", f"tenant_id={tenant}", "--order", "ordered", "--direction", "desc"]

    first = command_line.run(*asked, "--limit", "3")
    rest = command_line.run(*asked, "--limit", "3", "--cursor", first.summary["cursor"])

    assert [item["id"] for item in first.summary["items"]] == ["u4", "u3", "u2"]
    assert [item["id"] for item in rest.summary["items"]] == ["u1", "u0"]
    assert rest.summary["cursor"] is None


def test_a_listing_accepts_indexes_filters_and_fields(command_line: CommandLine, users: Users, tenant: str) -> None:
    people = [("a", "legal", "m1"), ("b", "legal", "m2"), ("c", "sales", "m1")]
    for name, department, manager in people:
        users.create(User(tenant_id=tenant, **{**ADA, "id": name}, department=department, manager_id=manager))

    by_index = command_line.run(
        "list", "users", f"tenant_id={tenant}", "department=legal", "--index", "by_department",
        "--order", "ordered", "--fields", "id,department",
    )  # fmt: skip
    filtered = command_line.run("list", "users", f"tenant_id={tenant}", "manager_id=m1", "--fields", "id")

    assert by_index.summary["items"] == [{"id": name, "department": "legal"} for name in ("a", "b")]
    assert sorted(item["id"] for item in filtered.summary["items"]) == ["a", "c"]


def test_fields_select_the_index_of_a_listing_as_over_rest(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    for name in ("a", "b"):
        users.create(User(tenant_id=tenant, **{**ADA, "id": name, "email": f"{name}@example.com"}))
    shift = [f"tenant_id={tenant}", "team_id=t1", "schedule_id=s1", "shift_id=x", "user_id=ada"]
    times = ["starts_at=2026-11-20T08:00:00Z", "ends_at=2026-11-20T16:00:00Z"]
    stored = command_line.run("put", "shifts", *shift, *times)
    assert stored.status == 0, stored.err

    by_sort_field = command_line.run("list", "users", f"tenant_id={tenant}", "email=b@example.com", "--fields", "id")
    by_both = command_line.run("list", "shifts", f"tenant_id={tenant}", "user_id=ada", times[0], "--fields", "shift_id")
    unknown = command_line.run("list", "users", f"tenant_id={tenant}", "--index", "by_name")

    assert by_sort_field.summary["items"] == [{"id": "b"}]
    assert by_both.summary["items"] == [{"shift_id": "x"}]
    assert (unknown.status, "known are by_email" in unknown.err) == (1, True)


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        (["email[prefix]=ada"], ["a"]),
        (["email[gte]=b", "email[lt]=d"], ["b", "c"]),
        (["status[in]=disabled,deleted"], ["b"]),
        (["department[in]=legal", "department[in]=a,b"], ["a", "c"]),
        (["department[exists]=false"], ["b"]),
        (["status[eq]=active", "department[ne]=legal"], ["c"]),
    ],
)
def test_a_listing_takes_the_operators_of_rest(
    command_line: CommandLine, users: Users, tenant: str, conditions: list[str], found: list[str]
) -> None:
    people = [("a", "ada", "legal", "active"), ("b", "bob", None, "disabled"), ("c", "c", "a,b", "active")]
    for name, address, department, status in people:
        fields = {"email": f"{address}@example.com", "department": department, "status": status}
        users.create(User.model_validate({"tenant_id": tenant, **ADA, "id": name, **fields}))

    listed = command_line.run("list", "users", f"tenant_id={tenant}", *conditions, "--fields", "id")

    assert sorted(item["id"] for item in listed.summary["items"]) == found, listed.err


def test_a_listing_accepts_a_prefix_and_several_partitions(command_line: CommandLine, tenant: str) -> None:
    for team, schedule in (("t1", "s1"), ("t1", "s2"), ("t2", "s1")):
        command_line.run(
            "put", "schedules", f"tenant_id={tenant}", f"team_id={team}", f"schedule_id={schedule}", "name=x"
        )
    for year in (2016, 2017, 2018):
        article = {"author": "parth", "year": year, "title": f"Of {year}", "published_at": f"{year}-03-01T00:00:00Z"}
        stored = command_line.run("put", "articles", f"tenant_id={tenant}", json.dumps(article))
        assert stored.status == 0, stored.err

    schedules = command_line.run("list", "schedules", f"tenant_id={tenant}", "team_id=t1", "--order", "ordered")
    articles = command_line.run("list", "articles", f"tenant_id={tenant}", "author=parth", "year=2016", "year=2018")

    assert [item["schedule_id"] for item in schedules.summary["items"]] == ["s1", "s2"]
    assert sorted(item["year"] for item in articles.summary["items"]) == [2016, 2018]


def test_edges_are_read_from_either_end(
    command_line: CommandLine, wire: Transport, local_table: str, tenant: str
) -> None:
    db = Dynashard(wire, table=local_table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)
    EdgeStore.on(db, FOLLOWS).add(tenant, "User.9", "Actor.5")

    one = command_line.run("get", "follows", f"tenant_id={tenant}", "node=User.9", "other=Actor.5")
    fans = command_line.run("list", "follows", f"tenant_id={tenant}", "of=Actor.5", "way=backward", "--limit", "5")
    deleted = command_line.run("delete", "follows", f"tenant_id={tenant}", "node=User.9", "other=Actor.5")
    none = command_line.run("list", "follows", f"tenant_id={tenant}", "of=User.9")

    assert (one.status, one.summary["other"]) == (0, "Actor.5"), one.err
    assert [edge["other"] for edge in fans.summary["items"]] == ["User.9"]
    assert deleted.status == 0
    assert none.summary == {"items": [], "cursor": None}


def test_output_to_a_terminal_is_a_table(command_line: CommandLine, ada: User) -> None:
    shown = on_a_terminal(command_line, "list", "users", f"tenant_id={ada.tenant_id}", "--fields", "id,email")

    assert "│ ada │ ada@example.com │" in shown
    assert "{" not in shown


def test_json_can_be_requested_at_a_terminal(command_line: CommandLine, ada: User) -> None:
    shown = on_a_terminal(command_line, "list", "users", f"tenant_id={ada.tenant_id}", "--fields", "id", "--json")

    assert json.loads(shown) == {"items": [{"id": "ada"}], "cursor": None}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "nobodies", "id=ada"], "no entity is called 'nobodies'"),
        (["get", "users", "id=ada"], "tenant_id: Name the tenant. (validation_failed)"),
        (["get", "users", "tenant_id=null", "id=ada"], "tenant_id: Send a string that matches"),
        (["get", "users", "tenant_id=abc", "ada"], "'ada' has no `=`; write NAME=VALUE"),
        (["get", "users", "tenant_id=abc", "="], "'=' has no name before its `=`; write NAME=VALUE"),
        (["get", "users", "tenant_id=abc"], "key.id: This field is required. (validation_failed)"),
        (["get", "users", "tenant_id=abc", "id=a", "x=1"], "key.x: Unknown field; known are id."),
        (["get", "articles", "tenant_id=abc", "year=soon"], "year=soon: Input should be a valid integer"),
        (["get", "users", "tenant_id=abc", "id=a", "--include", "photo"], "include: Use a list of nothing."),
        (["put", "users", "tenant_id=abc", "{"], "the item is not valid JSON at line 1"),
        (["put", "users", "tenant_id=abc", "[1]"], "the item is not a JSON object"),
        (["put", "users", "tenant_id=abc", '{"id": 1, "id": 2}'], "the name 'id' appears twice"),
        (["put", "users", "tenant_id=abc", "{}", "{}"], "give one item"),
        (["put", "users", "tenant_id=abc", "{}", "--file", "x"], "leave one of them out"),
        (["put", "users", "tenant_id=abc", "--file", "/no/such.json"], "/no/such.json cannot be read: No such file"),
        (["put", "users", "id=b", '{"id": "a", "tenant_id": "abc"}'], "id is given twice, with two values"),
        (["put", "users", "tenant_id=abc", '{"id": "a"}'], "email: Field required. display_name: Field required."),
        (["put", "users", "tenant_id=abc", '{"id": 1, "email": "a@b"}'], "id: Input should be a valid string"),
        (["put", "episode-plays", "tenant_id=abc", "{}"], "is not served by itself: ask for roll-ups"),
        (["put", "follows", "tenant_id=abc", "{}"], "is not served with put; it is with create, get, delete, list"),
        (["put", "participations", "tenant_id=abc", "{}"], "is not served with put; it is with get, list"),
        (["list", "users", "tenant_id=abc", "--limit", "0"], "limit: Use a number from 1 to 1000."),
        (["list", "users", "tenant_id=abc", "--limit", "5000"], "limit: Use a number from 1 to 1000."),
        (["list", "users", "tenant_id=abc", "--index", "by_age"], "index: Unknown index; known are by_email"),
        (["list", "users", "tenant_id=abc", "--cursor", "1x"], "(invalid_cursor)"),
        (["list", "users", "tenant_id=abc", "shoe=44"], "shoe does not choose items of this listing. It takes id, "),
        (["list", "users", "tenant_id=abc", "departmnt=legal"], "of this listing; did you mean department? It takes"),
        (["list", "users", "tenant_id=abc", "status=active", "status=deleted"], "give one value, or 'status[in]=A,B'"),
        (["list", "users", "tenant_id=abc", "status[like]=a"], "'like' is not an operator; write one of eq, ne, gt"),
        (["list", "users", "tenant_id=abc", "email[gt]=a", "email[gt]=b"], "email[gt] is given 2 times"),
        (["list", "participations", "tenant_id=abc", "participant=user_a", "state[gt]=A"], "takes no operators here"),
        (["list", "accesses", "tenant_id=abc"], "error: path: This field is required."),
        (["list", "pings", "tenant_id=abc", "at=20261120"], "at=20261120: Write a time such as 2026-11-20T10:15:00Z"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(command_line: CommandLine, arguments: list[str], said: str) -> None:
    ended = command_line.run(*arguments)

    assert (ended.status, ended.out, len(ended.err.splitlines())) == (1, "", 1)
    assert ended.err.startswith("error: ")
    assert said in ended.err


def test_an_item_that_is_too_large_to_read_is_refused(command_line: CommandLine, tenant: str) -> None:
    ended = command_line.run("put", "users", f"tenant_id={tenant}", "-", stdin=b" " * (6 * 1024 * 1024 + 1))

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "standard input has more than 6,291,456 bytes" in ended.err


def test_an_internal_error_is_shown_with_its_traceback(
    command_line: CommandLine, wire: Transport, local_table: str, users: Users, ada: User
) -> None:
    [home] = [shard.partition_key for shard in users.shards({"tenant_id": ada.tenant_id}) if shard.items]
    wire.call(
        "UpdateItem",
        {
            "TableName": local_table,
            "Key": {PK: {"S": home}, SK: {"S": "ada"}},
            "UpdateExpression": "SET display_name = :odd",
            "ExpressionAttributeValues": {":odd": {"BOOL": True}},
        },
    )

    ended = command_line.run("get", "users", f"tenant_id={ada.tenant_id}", "id=ada")

    assert (ended.status, ended.out, len(ended.err.splitlines())) == (1, "", 1)
    assert "display_name" in ended.err
    assert ended.err.endswith("(undecodable_item)\n")


def test_a_deployed_environment_signs_cursors_with_its_own_secret(
    account: CommandLine, local_table: str, topology_table: str, users: Users, tenant: str
) -> None:
    users.batch_write(put=[User(tenant_id=tenant, **{**ADA, "id": f"u{n}"}) for n in range(3)])
    deploy("Dynashard-staging-Data", {"TableName": local_table, "TopologyName": topology_table})
    asked = ["list", "users", f"tenant_id={tenant}", "--order", "ordered", "--env", "staging", "--limit", "2"]

    before = account.run(*asked)
    one = account.run("get", "users", f"tenant_id={tenant}", "id=u0", "--env", "staging")
    deploy("Dynashard-staging-Api", {"CursorSecretArn": secret_of("a secret of sixteen bytes")})
    first = account.run(*asked)
    rest = account.run(*asked, "--cursor", first.summary["cursor"])

    assert before.status == 1
    assert "the stack Dynashard-staging-Api cannot be read" in before.err
    assert one.summary["id"] == "u0"
    assert [item["id"] for item in rest.summary["items"]] == ["u2"]


def test_every_entity_can_be_named(command_line: CommandLine) -> None:
    for each in ENTITIES:
        ended = command_line.run("get", each.path, "tenant_id=abc", "no_such_field=1")

        assert (ended.status, len(ended.err.splitlines())) == (1, 1)


def key_of(user: User) -> dict[str, str]:
    return {"tenant_id": user.tenant_id, "id": user.id}


def on_a_terminal(command_line: CommandLine, *arguments: str | Path) -> str:
    """Run a command whose standard output is a terminal, and return the output."""
    ours, theirs = os.openpty()
    process = command_line.start(*arguments, stdout=theirs, TERM="dumb", COLUMNS="120")
    os.close(theirs)
    with process, os.fdopen(ours, "rb", buffering=0) as terminal:
        parts = []
        try:
            while part := terminal.read(65536):
                parts.append(part)
        except OSError:  # Linux raises this when the other side is closed.
            pass
        _, err = process.communicate()
    assert process.returncode == 0, err
    return b"".join(parts).decode().replace("\r\n", "\n")


def deploy(stack: str, outputs: dict[str, str]) -> None:
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    boto3.client("cloudformation", region_name="us-east-1").create_stack(
        StackName=stack, TemplateBody=orjson.dumps(template).decode()
    )


def secret_of(key: str) -> str:
    """Create a secret with this cursor key, and return its ARN."""
    made = boto3.client("secretsmanager", region_name="us-east-1").create_secret(
        Name="cursors", SecretString=json.dumps({"current": key, "previous": []})
    )
    return str(made["ARN"])
