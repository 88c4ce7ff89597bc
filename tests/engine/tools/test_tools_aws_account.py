"""Commands that change whole tenants name the AWS account first, unless cdk.json does. AWS is moto, the engine ours."""

import json
import re

import pytest
from moto.core import DEFAULT_ACCOUNT_ID

from domain.samples.users import User
from dynashard.service import Collection
from dynashard_tools.aws_account import require_account, show_account
from dynashard_tools.failure import CommandError
from tests.engine.command_line import CommandLine, emails_of, expected, user

pytestmark = pytest.mark.engine

OURS = f"account {DEFAULT_ACCOUNT_ID} (arn:aws:"
UNNAMED = "cdk.json names no account for staging"


@pytest.fixture
def stored(deployed: CommandLine, users: Collection[User], tenant: str) -> Collection[User]:
    """The users of a tenant with two."""
    loaded = deployed.run(
        "load", "users", deployed.file("users.jsonl", user(0), user(1)), "--tenant", tenant, "--env=prod"
    )
    assert loaded.status == 0, loaded.err
    return users


def test_a_purge_in_an_unnamed_account_needs_more_than_the_tenants_name(
    deployed: CommandLine, stored: Collection[User], tenant: str
) -> None:
    purge = ("account", "purge", tenant, "--confirm", tenant, "--env", "staging")

    refused = deployed.run(*purge)
    other = deployed.run(*purge, "--aws-account", "111122223333")
    left = emails_of(stored, tenant)
    looked = deployed.run("account", "purge", tenant, "--env", "staging")
    named = deployed.run(*purge, "--aws-account", DEFAULT_ACCOUNT_ID, "--json")

    assert (refused.status, other.status) == (1, 1)
    assert f"the credentials are of {OURS}" in refused.err
    assert f", Region us-east-1; {UNNAMED}" in refused.err
    assert (
        f"nobody can confirm account {DEFAULT_ACCOUNT_ID}: set environments.staging.account in cdk.json, or add "
        in (refused.err)
    )
    assert f"--aws-account is 111122223333, and staging is in account {DEFAULT_ACCOUNT_ID}" in other.err
    assert left == expected(2)
    # A question about what is stored removes nothing, so it is not asked about.
    assert (looked.status, UNNAMED in looked.err) == (0, False)
    assert (named.status, named.summary["items"]) == (0, 2)
    assert emails_of(stored, tenant) == []


def test_a_purge_in_an_account_of_cdk_json_needs_no_more(
    deployed: CommandLine, stored: Collection[User], tenant: str
) -> None:
    purge = ("account", "purge", tenant, "--confirm", tenant, "--env", "prod")

    other = deployed.run(*purge, "--aws-account", "111122223333")
    done = deployed.run(*purge, "--json")

    assert (other.status, "prod is in account" in other.err) == (1, True)
    assert (done.status, done.summary["items"]) == (0, 2)
    assert re.fullmatch(r"this reads the whole table at least twice[:,] .*\n", done.err)
    assert emails_of(stored, tenant) == []


def test_the_local_stack_is_in_no_account(command_line: CommandLine, tenant: str) -> None:
    purge = ("account", "purge", tenant, "--confirm", tenant)

    assert command_line.run(*purge, "--aws-account", DEFAULT_ACCOUNT_ID).status == 1


@pytest.mark.parametrize("environment", ["staging", "nowhere"])
@pytest.mark.parametrize("answer", [True, False])
def test_a_person_confirms_the_account_of_an_environment_without_one(
    deployed: CommandLine,
    environment: str,
    answer: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert deployed
    asked: list[str] = []

    def ask(text: str) -> bool:
        asked.append(text)
        return answer

    if answer:
        require_account(environment, None, terminal=lambda: True, ask=ask)
    else:
        with pytest.raises(CommandError, match="the answer was no: nothing was done"):
            require_account(environment, None, terminal=lambda: True, ask=ask)

    assert asked == [f"Is this the account of {environment}?"]
    assert f"cdk.json names no account for {environment}" in capsys.readouterr().err


@pytest.mark.usefixtures("topology")
def test_a_resize_in_an_unnamed_account_needs_yes_from_a_script(
    deployed: CommandLine, stored: Collection[User], tenant: str
) -> None:
    assert stored
    start = ("reshard", "start", "users", tenant, "--to", "4", "--env")

    refused = deployed.run(*start, "staging")
    before = json.loads(deployed.run("reshard", "status", "users", tenant, "--env", "prod", "--json").out)
    begun = deployed.run(*start, "staging", "--yes", "--json")
    deployed.run("reshard", "abort", "users", tenant, "--env", "prod")

    assert (refused.status, "add --yes" in refused.err) == (1, True)
    assert before[0]["target"] is None
    assert (begun.status, UNNAMED in begun.err) == (0, True)
    assert begun.summary["target"] == 4


@pytest.mark.usefixtures("topology")
def test_a_resize_in_an_account_of_cdk_json_is_not_asked_about(
    deployed: CommandLine, stored: Collection[User], tenant: str
) -> None:
    assert stored
    begun = deployed.run("reshard", "start", "users", tenant, "--to", "4", "--env", "prod")
    deployed.run("reshard", "abort", "users", tenant, "--env", "prod")

    assert (begun.status, "account" in begun.err) == (0, False)


def test_a_local_aws_and_the_local_stack_have_no_account_to_show(
    deployed: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deployed
    # Nothing listens there, so a call would fail.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    for environment in ("staging", None):
        show_account(environment, answered=False)
        require_account(environment, None, terminal=lambda: False)

    assert capsys.readouterr().err == ""


def test_the_commands_own_question_follows_the_account(
    deployed: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deployed

    show_account("staging", answered=True)

    assert f"the credentials are of {OURS}" in capsys.readouterr().err
    with pytest.raises(CommandError, match=f"nobody can confirm account {DEFAULT_ACCOUNT_ID}.*or add --yes"):
        show_account("staging", answered=False)


def test_a_restore_names_the_account_before_its_first_question(deployed: CommandLine) -> None:
    ended = deployed.run("restore", "--env", "staging", "--to", "2026-11-20T10:15:00Z")

    first, *_ = ended.err.splitlines()
    assert first.startswith(f"the credentials are of {OURS}")
    assert ended.status == 1
