"""A deployment of other settings: CloudFormation removes no export that a stack still imports.

Stacks are deployed one after another, the data first, so the others are still those of the settings before.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.conftest import Synthesised
from tests.infra.templates import Templates

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
    imported = {name for each in stacks(before).values() for name in imports(each)}
    return imported - {name for each in stacks(after).values() for name in exports(each)}


def test_a_schedule_of_capacity_can_be_removed(scheduled: Templates, synthesised: Synthesised) -> None:
    assert lost(scheduled, synthesised("dev", None)) == set()


def test_a_schedule_of_0_1_0_whose_monitoring_stack_imports_it_can_be_kept(scheduled: Templates) -> None:
    assert "Dynashard-dev-Data:ExportsOutputRefCapacityGroup6E2E2F345A97AF3A" in exports(scheduled["Data"])
