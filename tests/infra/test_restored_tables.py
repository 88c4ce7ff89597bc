"""An environment on restored tables: everything uses them, and nothing of the data stack is removed."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.infra.conftest import Synthesised
from tests.infra.templates import Templates, context, of_type, short, statements, synthesise
from tests.infra.test_settings import RESTORED

pytestmark = pytest.mark.infra

NAMES = {"TABLE_NAME": "table-back", "TOPOLOGY_TABLE": "topology-back"}


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    given = context("dev", restored=RESTORED)
    return Templates(synthesise(given, tmp_path_factory.mktemp("restored")), "dev")


def functions(templates: Templates) -> Iterator[dict[str, Any]]:
    for path in templates.files:
        stack = path.name.removesuffix(".template.json").split("-")[2]
        for each in of_type(templates[stack], "AWS::Lambda::Function").values():
            yield each["Properties"]["Environment"]["Variables"]


def test_every_function_uses_the_restored_tables(restored: Templates) -> None:
    named = [variables for variables in functions(restored) if "TABLE_NAME" in variables]

    assert len(named) > 8
    assert all({name: variables[name] for name in NAMES} == NAMES for variables in named)


def test_roles_streams_and_alarms_are_of_the_restored_tables(restored: Templates) -> None:
    streams = [
        short(each["Properties"]["EventSourceArn"])
        for stack in ("Changes", "Reshard")
        for each in of_type(restored[stack], "AWS::Lambda::EventSourceMapping").values()
    ]
    tables = {name for name in statements(restored["Api"], "ApiRole") if ":table/" in name or "GetAttT" in name}
    alarmed = {
        short(dimension["Value"])
        for alarm in of_type(restored["Monitoring"], "AWS::CloudWatch::Alarm").values()
        for metric in alarm["Properties"].get("Metrics", [])
        for dimension in metric.get("MetricStat", {}).get("Metric", {}).get("Dimensions", [])
        if dimension["Name"] == "TableName"
    }

    assert streams == [RESTORED["table_stream"], RESTORED["topology_stream"]]
    assert {name.rpartition(":table/")[2].split("/")[0] for name in tables} == {"table-back", "topology-back"}
    (idempotency,) = alarmed - {"table-back", "topology-back"}
    assert "Idempotency" in idempotency


def test_the_data_stack_keeps_its_tables_and_what_other_stacks_still_import(
    restored: Templates, synthesised: Synthesised
) -> None:
    before, after = synthesised("dev", None)["Data"], restored["Data"]
    exports = {each["Export"]["Name"]: each["Value"] for each in before["Outputs"].values() if "Export" in each}

    assert of_type(after, "AWS::DynamoDB::GlobalTable") == of_type(before, "AWS::DynamoDB::GlobalTable")
    assert (
        exports.items()
        <= {each["Export"]["Name"]: each["Value"] for each in after["Outputs"].values() if "Export" in each}.items()
    )
    assert (after["Outputs"]["TableName"]["Value"], after["Outputs"]["TopologyName"]["Value"]) == tuple(NAMES.values())
