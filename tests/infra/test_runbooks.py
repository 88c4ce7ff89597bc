"""Every alarm has a page that begins with the command to type, and every command on the pages exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynashard import schema
from tests.aws_commands import problems
from tests.infra.templates import Templates, alarms_in, first_commands
from tests.markdown import ROOT, Snippet, snippets

pytestmark = pytest.mark.infra

RUNBOOKS = ROOT / "docs" / "runbooks"
WITHOUT_ALARM = {"index", "restore"}
PAGES = sorted(path for path in RUNBOOKS.glob("*.md") if path.stem not in WITHOUT_ALARM)
SECTIONS = ["What it shows", "What to do"]
ENVIRONMENT = "prod"
PROGRAMS = {"dynashard", "aws", "export", "make", "node_modules/.bin/cdk", "unset"}
SETS = re.compile(r"^[A-Z_]+=(?:\$\((?P<command>.*)\)|(?P<value>\S+))$")


@pytest.fixture(scope="module")
def alarms(dev: Templates, prod: Templates, watched: Templates) -> set[str]:
    """The names of all alarms that any environment can have."""
    found = [alarms_in(each["Monitoring"]) for each in (dev, prod, watched)]
    return {name for each in (*found, alarms_in(prod["Prewarm"])) for name in each}


def test_every_alarm_has_a_page_and_every_page_an_alarm(alarms: set[str]) -> None:
    pages = {path.stem for path in PAGES}

    of_alarm = {name: [page for page in pages if name == page or name.startswith(f"{page}-")] for name in alarms}

    assert {name for name, found in of_alarm.items() if not found} == set()
    assert {max(found, key=len) for found in of_alarm.values()} == pages == set(first_commands())


def test_every_page_is_in_the_index() -> None:
    index = (RUNBOOKS / "index.md").read_text("utf-8")

    assert [path.stem for path in PAGES if f"({path.name})" not in index] == []
    assert "(restore.md)" in index


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_begins_with_the_command_of_its_alarms(page: Path) -> None:
    title, blank, fence, *rest = page.read_text("utf-8").splitlines()
    headings = [line.removeprefix("## ") for line in rest if line.startswith("## ")]
    block = "\n".join(rest[: rest.index("```")]).replace("\\\n", " ").splitlines()

    assert title.startswith("# ")
    assert (blank, fence) == ("", "```")
    first = first_commands()[page.stem].format(env=ENVIRONMENT)
    assert first in block
    # What is before it sets its variables.
    assert all(SETS.match(line) for line in block[: block.index(first)])
    assert headings[:2] == SECTIONS


def commands(page: Path) -> Iterator[tuple[Snippet, str]]:
    """Yield the command lines of a page's blocks of code; output and settings have languages of their own."""
    for snippet in snippets(page, page.read_text("utf-8")):
        if snippet.language in ("", "sh"):
            for line in snippet.text.replace("\\\n", " ").splitlines():
                found = SETS.match(line)
                command = line if found is None else found["command"]
                if command:
                    yield snippet, command


@pytest.mark.parametrize("page", [*PAGES, RUNBOOKS / "restore.md"], ids=lambda page: page.stem)
def test_every_command_of_a_page_exists(page: Path) -> None:
    # Commands of dynashard and targets of make are checked on all pages of the documentation.
    for snippet, line in commands(page):
        program = next(word for word in shlex.split(line, comments=True) if "=" not in word)
        assert program in PROGRAMS, snippet.place
        if program == "aws":
            assert problems(line) == [], snippet.place


def test_a_restored_table_gets_the_settings_of_the_data_stack() -> None:
    # CDK is loaded by the tests that need it, not by all that are collected.
    from dynashard_cdk.sharded_table import RECOVERY_DAYS  # noqa: PLC0415

    page = (RUNBOOKS / "restore.md").read_text("utf-8")

    assert f"AttributeName={schema.EXPIRES_AT}" in page
    assert page.count(f"RecoveryPeriodInDays={RECOVERY_DAYS}") == 2
    assert page.count("StreamViewType=NEW_AND_OLD_IMAGES") == 2
    assert [slot for slot in schema.INDEX_SLOTS if f"--index-name {slot} " not in page] == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("aws dynamo list-tables", "there is no service dynamo"),
        ("aws dynamodb describe-tables", "dynamodb has no operation describe-tables"),
        ("aws dynamodb describe-table", "DescribeTable needs --table-name"),
        ("aws dynamodb describe-table --table-name t --colour red", "DescribeTable has no option --colour"),
        ("aws dynamodb wait table-gone --table-name t", "dynamodb has no waiter table-gone"),
        ("aws dynamodb update-table --table-name t --billing-mode FREE", "--billing-mode FREE: use PROVISIONED, PAY"),
    ],
)
def test_a_wrong_command_is_reported(line: str, problem: str) -> None:
    [found] = problems(line)

    assert found.startswith(problem)


def test_right_commands_are_accepted() -> None:
    assert problems("aws dynamodb update-table --table-name $TABLE --no-deletion-protection-enabled") == []
    assert problems("aws dynamodb wait table-exists --table-name t --region eu-west-1") == []
