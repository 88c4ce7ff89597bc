"""`dynashard load` as a person calls it: stored rows, printed reports and exit status."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from domain.samples.users import User
from dynashard.schema import PK
from dynashard.service import Collection
from dynashard_tools.load.loader import BATCH
from tests.engine.command_line import CommandLine, emails_of, expected, user
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

EXAMPLE = Path(__file__).parents[3] / "examples" / "users.csv"
Users = Collection[User]


@pytest.fixture
def command_line(command_line: CommandLine) -> CommandLine:
    return command_line.with_long_operations()


def state_of(file: Path) -> Path:
    return file.with_name(file.name + ".load-state")


def test_the_example_loads_every_row_once(command_line: CommandLine, users: Users, tenant: str) -> None:
    state = command_line.folder / "state"

    loaded = command_line.run("load", "users", EXAMPLE, "--tenant", tenant, "--state", state, "--json")

    emails = emails_of(users, tenant)
    rows = EXAMPLE.read_text(encoding="utf-8").splitlines()[1:]
    assert loaded.status == 0
    assert emails == sorted(row.split(",")[1] for row in rows)
    assert len(set(emails)) == loaded.summary["items"] == 1000
    assert not state.exists()


def test_the_file_to_load_is_not_replaced_by_its_errors(command_line: CommandLine, tenant: str) -> None:
    file = command_line.file("users.jsonl", user(0), "{")
    before = file.read_text()

    refused = command_line.run("load", "users", file, "--tenant", tenant, "--errors", file.parent / "." / file.name)

    assert (refused.status, file.read_text()) == (1, before)
    assert "name another file" in refused.err


def test_every_field_of_a_row_is_stored(command_line: CommandLine, users: Users, tenant: str) -> None:
    file = command_line.file(
        "users.csv",
        "id,email,display_name,department,manager_id,status,expires_at",
        '7,zoë@example.com,"Zoë, ""the"" first",people,1,disabled,2999-01-01T00:00:00+01:00',
    )

    assert command_line.run("load", "users", file, "--tenant", f"tenant_id={tenant}").status == 0

    stored = users.get({"tenant_id": tenant, "id": "7"}).model_dump(mode="json")
    assert stored | {"created_at": "", "updated_at": ""} == {
        "tenant_id": tenant,
        "id": "7",
        "email": "zoë@example.com",
        "display_name": 'Zoë, "the" first',
        "department": "people",
        "manager_id": "1",
        "status": "disabled",
        "expires_at": "2998-12-31T23:00:00Z",
        "created_at": "",
        "updated_at": "",
    }


def test_a_row_without_an_id_becomes_an_item_of_its_own(command_line: CommandLine, users: Users, tenant: str) -> None:
    file = command_line.file("users.jsonl", user(0), user(1), user(0))

    assert command_line.run("load", "users", file, "--tenant", tenant).status == 0

    ids = {item.id for item in users.scan({"tenant_id": tenant})}
    assert len(ids) == 3
    assert {len(each) for each in ids} == {27}


def test_a_row_replaces_the_item_of_its_key(command_line: CommandLine, users: Users, tenant: str) -> None:
    users.create(User(tenant_id=tenant, id="1", email="old@example.com", display_name="Old", department="sales"))
    file = command_line.file("users.jsonl", user(0, id="1"))

    assert command_line.run("load", "users", file, "--tenant", tenant).status == 0

    [stored] = users.scan({"tenant_id": tenant})
    assert (stored.email, stored.department) == ("u0@example.com", None)


def test_rows_may_name_their_tenants_themselves(command_line: CommandLine, users: Users, tenant: str) -> None:
    other = f"{tenant}-other"
    file = command_line.file("users.jsonl", user(0, tenant_id=tenant), user(1, tenant_id=other))

    assert command_line.run("load", "users", file).status == 0

    assert emails_of(users, tenant) == ["u0@example.com"]
    assert emails_of(users, other) == ["u1@example.com"]


@pytest.mark.parametrize("wrong", ["a b", "abc:0", "a" * 65, "null"])
def test_a_tenant_that_the_api_refuses_is_not_loaded(command_line: CommandLine, wrong: str) -> None:
    named = command_line.run("load", "users", command_line.file("u.jsonl", user(0)), "--tenant", wrong)
    refused = command_line.run("load", "users", command_line.file("v.jsonl", user(0, tenant_id=wrong)))

    assert (named.status, refused.status) == (1, 1)
    assert "^[A-Za-z0-9_-]{1,64}$" in named.err
    assert "tenant_id" in refused.err
    assert "^[A-Za-z0-9_-]{1,64}$" in refused.err


def test_the_environment_sets_another_pattern_of_tenants(
    command_line: CommandLine, users: Users, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANT_PATTERN", "^[a-z0-9.-]{1,100}$")
    file = command_line.file("users.jsonl", user(0))

    assert command_line.run("load", "users", file, "--tenant", f"{tenant}.eu").status == 0

    assert emails_of(users, f"{tenant}.eu") == ["u0@example.com"]


def test_the_summary_counts_items_and_write_units(
    command_line: CommandLine, dynamodb: RawDynamoDB, local_table: str, tenant: str
) -> None:
    rows = [user(number, department="people", manager_id="1") for number in range(30)]
    file = command_line.file("users.jsonl", *rows, {}, user(30))
    # The first command on a table also writes topology records.
    assert command_line.run("load", "users", command_line.file("first.jsonl", user(31, tenant_id="first"))).status == 0

    loaded = command_line.run("load", "users", file, "--tenant", tenant, "--on-error", "skip", "--json")

    # The table and three indexes. The last item is in one index only.
    summary = loaded.summary
    assert summary["seconds"] > 0
    assert summary["items_per_second"] > 0
    del summary["seconds"], summary["items_per_second"]
    assert summary == {
        "entity": "users", "items": 31, "refused": 1, "refused_before": 0, "write_units": 30 * 4 + 2,
        "in_older_epochs": 0, "of_other_entities": 0, "dry_run": False,
    }  # fmt: skip
    assert stored_partitions(dynamodb, local_table, tenant)


def stored_partitions(dynamodb: RawDynamoDB, table: str, tenant: str) -> set[str]:
    # Items of other tests fill more than a page.
    found: set[str] = set()
    begin: dict[str, Any] = {}
    while True:
        answer = dynamodb.call("Scan", TableName=table, **begin)
        found |= {item[PK]["S"] for item in answer["Items"] if item.get("tenant_id") == {"S": tenant}}
        if "LastEvaluatedKey" not in answer:
            return found
        begin = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def test_items_are_spread_over_the_shards(
    command_line: CommandLine, dynamodb: RawDynamoDB, local_table: str, tenant: str
) -> None:
    file = command_line.file("users.jsonl", *(user(number, id=str(number)) for number in range(300)))

    assert command_line.run("load", "users", file, "--tenant", tenant).status == 0

    assert stored_partitions(dynamodb, local_table, tenant) == {f"user.v1.User:{tenant}:{n}" for n in range(16)}


def test_standard_input_is_loaded_as_a_file_is(command_line: CommandLine, users: Users, tenant: str) -> None:
    rows = b"email,display_name\nu0@example.com,A\nu1@example.com,B"

    loaded = command_line.run("load", "users", "-", "--format", "csv", "--tenant", tenant, stdin=rows)

    assert loaded.status == 0
    assert loaded.out.startswith("loaded 2 users in ")
    assert emails_of(users, tenant) == expected(2)


def test_an_empty_json_file_loads_nothing(command_line: CommandLine, tenant: str) -> None:
    file = command_line.file("users.jsonl")

    loaded = command_line.run("load", "users", file, "--tenant", tenant, "--json")

    assert (loaded.status, loaded.summary["items"]) == (0, 0)
    assert not state_of(file).exists()


BAD_ROWS = [
    ({"email": "a@b"}, "display_name: is missing"),
    (user(0, email="nobody"), "email: String should match pattern"),
    (user(0, emial="x"), "emial: is not a field"),
    (user(0, status="gone"), "status: Input should be 'active', 'disabled' or 'deleted'"),
    (user(0, tenant_id="foreign"), "tenant_id: differs from the tenant of this load"),
    (user(0, tenant_id=None), "tenant_id: differs from the tenant of this load"),
    (user(0, id=""), "id: String should have at least 1 character"),
    (user(0, id="x" * 1100), "1024"),
    (user(0, created_at="2020-01-01T00:00:00Z"), "created_at: is set by the server"),
    (user(0, expires_at="2999-01-01T00:00:00"), "expires_at: the time needs a time zone"),
    (user(0, email=7), "email: Input should be a valid string"),
    ("{", "not JSON"),
    ("[]", "not a JSON object"),
]


@pytest.mark.parametrize(("row", "reason"), BAD_ROWS)
def test_a_bad_row_is_reported_with_its_line_and_field(
    command_line: CommandLine, users: Users, tenant: str, row: str | dict[str, Any], reason: str
) -> None:
    file = command_line.file("users.jsonl", user(0), row, user(1))

    loaded = command_line.run("load", "users", file, "--tenant", tenant, "--on-error", "skip")

    [line] = loaded.err.splitlines()
    assert line.startswith("line 2: ")
    assert reason in line
    assert loaded.status == 3
    assert emails_of(users, tenant) == expected(2)


def test_a_row_without_a_tenant_is_refused_with_the_remedy(command_line: CommandLine) -> None:
    file = command_line.file("users.jsonl", user(0))

    loaded = command_line.run("load", "users", file)

    assert loaded.status == 1
    assert "line 1: tenant_id: is missing; give one for all rows with --tenant" in loaded.err


def test_a_second_row_with_a_key_is_reported_with_the_line_of_the_first(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    rows = [user(number, id=str(number)) for number in range(600)]
    file = command_line.file("users.jsonl", *rows, user(9999, id="3"))

    loaded = command_line.run("load", "users", file, "--tenant", tenant, "--on-error", "skip")

    assert loaded.err.splitlines() == ["line 601: line 4 has the same key"]
    assert loaded.status == 3
    assert emails_of(users, tenant) == expected(600)


def test_rows_of_one_id_in_two_tenants_are_different_items(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file(
        "users.jsonl", user(0, id="1", tenant_id=tenant), user(1, id="1", tenant_id=f"{tenant}-other")
    )

    assert command_line.run("load", "users", file).status == 0
    assert emails_of(users, tenant) == expected(1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("good", [0, 3, BATCH - 1, BATCH, BATCH + 1])
def test_stop_writes_everything_before_the_bad_line_and_nothing_after_it(
    command_line: CommandLine, users: Users, tenant: str, good: int
) -> None:
    file = command_line.file("users.jsonl", *map(user, range(good)), "{}", *map(user, range(good, good + 3)))

    loaded = command_line.run("load", "users", file, "--tenant", tenant)

    assert loaded.status == 1
    assert loaded.out == ""
    assert loaded.err.splitlines() == [
        f"line {good + 1}: email: is missing",
        f"error: stopped at line {good + 1}; {good:,} items are written{'; --resume continues from here' * bool(good)}",
    ]
    assert state_of(file).exists() is bool(good)
    assert emails_of(users, tenant) == expected(good)


def test_an_unreadable_file_stops_the_load_even_if_bad_lines_are_skipped(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file("users.csv", "email,display_name", "u0@example.com,A", 'u1@example.com,"B', "never,closed")

    loaded = command_line.run("load", "users", file, "--tenant", tenant, "--on-error", "skip")

    assert loaded.status == 1
    assert "line 3: broken CSV" in loaded.err
    assert "stopped at line 3; 1 item is written" in loaded.err
    assert emails_of(users, tenant) == expected(1)


def test_skip_leaves_out_bad_lines_and_writes_them_to_the_errors_file(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    errors = command_line.folder / "errors.jsonl"
    errors.write_text("of an earlier load\n")
    file = command_line.file("users.jsonl", user(0), "{", user(1), "", user(2, email="ü"), user(2))

    loaded = command_line.run(
        "load", "users", file, "--tenant", tenant, "--on-error", "skip", "--errors", errors, "--json"
    )

    found = [orjson.loads(line) for line in errors.read_bytes().splitlines()]
    assert [(each["line"], each["field"]) for each in found] == [(2, None), (5, "email")]
    assert all(each["reason"] for each in found)
    assert loaded.status == 3
    assert (loaded.summary["items"], loaded.summary["refused"]) == (3, 2)
    assert emails_of(users, tenant) == expected(3)
    assert not state_of(file).exists()


def contact(number: int, address: str | None = None) -> dict[str, Any]:
    name = f"{number}@example.com" if address is None else address
    return {"user_id": "ada", "method_id": str(number), "channel": "email", "address": name}


def addresses(command_line: CommandLine, tenant: str) -> list[str]:
    listed = command_line.run("list", "contact-methods", f"tenant_id={tenant}", "user_id=ada", "--json")
    return sorted(each["address"] for each in listed.summary["items"])


def test_a_row_whose_unique_values_an_item_has_is_left_out_with_its_line(
    command_line: CommandLine, tenant: str
) -> None:
    command_line.run("load", "contact-methods", command_line.file("first.jsonl", contact(0)), "--tenant", tenant)
    rows = [contact(1), contact(2, "0@example.com"), {}, contact(3)]
    file = command_line.file("more.jsonl", *rows)

    loaded = command_line.run("load", "contact-methods", file, "--tenant", tenant, "--on-error", "skip", "--json")

    assert loaded.status == 3
    taken, wrong = loaded.err.splitlines()
    assert taken.startswith("line 2: channel, address: ")
    assert "another item has this channel and address" in taken
    assert wrong == "line 3: user_id: is missing"
    assert (loaded.summary["items"], loaded.summary["refused"]) == (2, 2)
    assert addresses(command_line, tenant) == ["0@example.com", "1@example.com", "3@example.com"]


def test_stop_names_the_line_of_a_row_that_is_not_unique_and_goes_on_when_it_is_corrected(
    command_line: CommandLine, tenant: str
) -> None:
    command_line.run("load", "contact-methods", command_line.file("first.jsonl", contact(0)), "--tenant", tenant)
    rows = [contact(1), contact(2, "0@example.com"), contact(3)]
    file = command_line.file("more.jsonl", *rows)

    stopped = command_line.run("load", "contact-methods", file, "--tenant", tenant)
    command_line.file("more.jsonl", contact(1), contact(2), contact(3))
    resumed = command_line.run("load", "contact-methods", file, "--tenant", tenant, "--resume")

    assert (stopped.status, resumed.status) == (1, 0)
    assert stopped.err.splitlines()[-1] == (
        "error: stopped at line 2; at least 0 items are written; --resume continues from here"
    )
    assert addresses(command_line, tenant) == [f"{number}@example.com" for number in range(4)]


def test_a_dry_run_checks_all_rows_and_leaves_nothing_behind(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file("users.jsonl", user(0), "{}", user(1), "{}")

    checked = command_line.run("load", "users", file, "--tenant", tenant, "--dry-run", "--json")

    summary = checked.summary
    assert checked.status == 3
    assert (summary["dry_run"], summary["items"], summary["refused"]) == (True, 2, 2)
    assert [line[:6] for line in checked.err.splitlines()] == ["line 2", "line 4"]
    assert emails_of(users, tenant) == []
    assert summary["write_units"] == 0
    assert not state_of(file).exists()


def test_a_dry_run_needs_no_running_stack(command_line: CommandLine, tenant: str) -> None:
    away = {**command_line.environment, "DYNAMODB_ENDPOINT": "http://127.0.0.1:9"}
    offline = CommandLine(command_line.folder, away, command_line.monkeypatch, command_line.capsys)

    checked = offline.run("load", "users", EXAMPLE, "--tenant", tenant, "--dry-run")

    assert checked.status == 0
    assert checked.out.startswith("checked 1,000 users in ")
    assert checked.out.endswith(" 0 write units, 0 lines refused\n")


def test_a_dry_run_of_an_unfinished_load_looks_at_the_whole_file_or_with_resume_at_the_rest(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file("users.jsonl", user(0), "{}")
    command_line.run("load", "users", file, "--tenant", tenant)
    command_line.file("users.jsonl", user(0), user(1))
    kept = state_of(file).read_bytes()

    checked = command_line.run("load", "users", file, "--tenant", tenant, "--dry-run", "--json")
    rest = command_line.run("load", "users", file, "--tenant", tenant, "--dry-run", "--resume", "--json")

    assert (checked.status, checked.summary["items"]) == (0, 2)
    assert (rest.status, rest.summary["items"]) == (0, 1)
    assert state_of(file).read_bytes() == kept
    assert emails_of(users, tenant) == expected(1)


def test_on_a_terminal_a_bar_shows_the_progress_of_the_load(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file("users.jsonl", *map(user, range(20)), "{}")

    status, shown = command_line.on_a_terminal("load", "users", file, "--tenant", tenant, "--on-error", "skip")

    [last] = re.findall(r"20 items .*?([\d,]+)/s", shown.rpartition("\x1b[2K")[2])
    assert status == 3
    assert int(last.replace(",", "")) > 0
    assert "line 21: email: is missing" in shown
    assert emails_of(users, tenant) == expected(20)


def test_one_item_and_one_refused_line_are_singular(command_line: CommandLine, tenant: str) -> None:
    file = command_line.file("users.jsonl", user(0), "nothing")

    loaded = command_line.run("load", "users", file, "--tenant", tenant, "--on-error", "skip")

    assert loaded.out.startswith("loaded 1 item of users in ")
    assert loaded.out.endswith(", 1 line refused\n")
