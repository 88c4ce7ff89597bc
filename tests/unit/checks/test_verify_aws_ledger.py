"""The ledger of facts about AWS: its page, its paths, its checks, and constants that state limits of AWS."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from dynashard_checks.verify_aws.checks import CHECKS
from dynashard_checks.verify_aws.ledger import FOLDER, SECTIONS, Fact, page, sections, sources
from tests.markdown import ROOT

pytestmark = pytest.mark.unit

FACTS = [fact for section in sections() for fact in section.facts]
LOCAL = {check.name for check in CHECKS if check.local}
SERVICES = re.compile(
    r"\b(?:DynamoDB|SQS|Lambda|API Gateway|gateway|Step Functions|CloudWatch|EventBridge|CloudFormation)\b"
)
CHOSEN = {
    "layers/sharding/python/dynashard/tables.py:CREATION_SECONDS",
    "layers/sharding/python/dynashard/growth/policy.py:_LOAD_VALID_SECONDS",
    "layers/serving/python/dynashard_serving/shedding.py:TOLERANCE",
    "packages/cdk/dynashard_cdk/table_alarms.py:AMONG_MINUTES",
}
"""Constants whose texts name a service, and which are choices of this project."""


def fact_id(fact: Fact) -> str:
    return fact.fact[:50]


def test_the_page_is_made_from_the_data() -> None:
    assert (ROOT / "docs" / "assumptions.md").read_text("utf-8") == page(), "run `make assumptions`"


def test_every_file_of_facts_is_a_section() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == {*SECTIONS, "sources"}


def test_facts_are_written_once_and_every_source_is_used() -> None:
    assert len({fact.fact for fact in FACTS}) == len(FACTS)
    assert {name for fact in FACTS for name in fact.source} == sources().keys()
    assert all(url.startswith("https://") for url in sources().values())


@pytest.mark.parametrize("fact", FACTS, ids=fact_id)
def test_places_exist_and_have_the_names(fact: Fact) -> None:
    for place in fact.places:
        path, _, name = place.partition(":")
        assert (ROOT / path).is_file(), path
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text("utf-8")), place


@pytest.mark.parametrize("fact", FACTS, ids=fact_id)
def test_a_fact_has_a_check_or_a_reason_why_not(fact: Fact) -> None:
    assert bool(fact.checks) != bool(fact.why_not)
    assert set(fact.checks) <= {check.name for check in CHECKS}


def test_every_check_observes_a_fact() -> None:
    assert {check.name for check in CHECKS} == {name for fact in FACTS for name in fact.checks}


@pytest.mark.parametrize("fact", [fact for fact in FACTS if "observed on" in fact.status], ids=fact_id)
def test_checks_of_a_locally_observed_fact_run_on_local_engines(fact: Fact) -> None:
    assert set(fact.checks) <= LOCAL


def limits(path: Path) -> Iterator[str]:
    """Return the numbers of a module whose texts name a service of AWS."""
    body = ast.parse(path.read_text("utf-8")).body
    for statement, text in pairwise(body):
        match statement, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                numbers = [node for node in ast.walk(statement) if isinstance(node, ast.Constant)]
                if any(type(each.value) in (int, float) for each in numbers) and SERVICES.search(said):
                    yield f"{path.relative_to(ROOT).as_posix()}:{name}"


def test_every_constant_that_names_a_service_of_aws_is_in_the_ledger_or_chosen_here() -> None:
    listed = {place for fact in FACTS for place in fact.places}
    rooms = ("layers", "packages/cdk")

    found = {limit for room in rooms for path in (ROOT / room).rglob("*.py") for limit in limits(path)}

    assert found - listed - CHOSEN == set(), (
        "name them in packages/checks/dynashard_checks/verify_aws/facts, or in CHOSEN"
    )
    assert found >= CHOSEN


def test_a_new_limit_of_aws_is_noticed() -> None:
    names = set(limits(ROOT / "layers/serving/python/dynashard_serving/prewarm/plan.py"))

    assert names == {"layers/serving/python/dynashard_serving/prewarm/plan.py:SWITCHES_A_DAY"}
