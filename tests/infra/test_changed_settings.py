"""A deployment of other settings: CloudFormation removes no export that a stack still imports.

Stacks are deployed one after another, the data first, so the others are still those of the settings before.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.infra.conftest import Synthesised
from tests.infra.templates import SIGN_IN, Templates, context, synthesise

pytestmark = pytest.mark.infra

EXPORT = re.compile(r'"Fn::ImportValue": "([^"]+)"')


def imports(template: Mapping[str, Any]) -> set[str]:
    return set(EXPORT.findall(json.dumps(template)))


def exports(template: Mapping[str, Any]) -> set[str]:
    return {each["Export"]["Name"] for each in template["Outputs"].values() if "Export" in each}


def stacks(templates: Templates) -> dict[str, dict[str, Any]]:
    return {name: templates[name] for name in (path.name.split("-")[2].split(".")[0] for path in templates.files)}


def lost(before: Templates, after: Templates) -> set[str]:
    """Return what the stacks of the settings before import from others that the settings after do not export."""
    return lost_by(stacks(before), after)


def lost_by(deployed: Mapping[str, Mapping[str, Any]], after: Templates) -> set[str]:
    imported = {name for each in deployed.values() for name in imports(each)}
    return imported - {name for each in stacks(after).values() for name in exports(each)}


def test_a_schedule_of_capacity_can_be_removed(scheduled: Templates, synthesised: Synthesised) -> None:
    assert lost(scheduled, synthesised("dev", None)) == set()


def test_a_pool_can_be_replaced_by_an_issuer_if_the_api_is_deployed_first(
    synthesised: Synthesised, tmp_path: Path
) -> None:
    before = synthesised("dev", None)
    after = Templates(synthesise(context("dev", auth=SIGN_IN), tmp_path), "dev")
    deployed = {name for each in stacks(before).values() for name in exports(each)}

    # docs/deploying.md has the order.
    assert {name.split(":")[0] for name in lost(before, after)} == {"Dynashard-dev-Data"}
    assert [name for name, each in stacks(before).items() if imports(each) & lost(before, after)] == ["Api"]
    assert imports(after["Api"]) <= deployed
    assert lost_by({**stacks(before), "Api": after["Api"]}, after) == set()


def test_a_schedule_of_0_1_0_whose_monitoring_stack_imports_it_can_be_kept(scheduled: Templates) -> None:
    assert "Dynashard-dev-Data:ExportsOutputRefCapacityGroup6E2E2F345A97AF3A" in exports(scheduled["Data"])


@pytest.mark.parametrize("way", ["native", "provisioned"])
def test_a_pre_warm_leaves_nothing_that_others_need_if_its_stack_is_removed_first(
    synthesised: Synthesised, way: str
) -> None:
    before, after = synthesised("dev", way), synthesised("dev", None)
    left = {name: each for name, each in stacks(before).items() if name != "Prewarm"}

    # docs/prewarming.md has the order.
    assert lost(before, after) != set()
    assert lost_by(left, after) == set()
