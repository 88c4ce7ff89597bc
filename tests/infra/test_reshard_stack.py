"""The reshard stack: triggers, permissions and retries."""

import json
from typing import Any

import pytest

from dynashard import errors, schema
from dynashard_cdk.reshard_machine import ADVANCE_SECONDS, HOPELESS, REST_SECONDS
from dynashard_serving.reshard.steps import EVENTS
from dynashard_serving.reshard.watch import GRACE_SECONDS
from dynashard_tools.reshard.halting import machine_name
from tests.infra.conftest import Synthesised
from tests.infra.prewarm_world import definition_in
from tests.infra.templates import Templates, of_type, short, statements

pytestmark = pytest.mark.infra

TABLE = "<ExportsOutputFnGetAttTableArn48754775>"
STREAM = "<ExportsOutputFnGetAttTableStreamArn880E4FAC>"
ANYWHERE = {"*": ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]}
WATCHING = {"*": ["cloudwatch:GetMetricData", "lambda:ListEventSourceMappings", *ANYWHERE["*"]]}
LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]
HISTORY = 25_000
"""Events after which Step Functions ends an execution."""


def role_of(template: dict[str, Any], name: str) -> dict[str, list[str]]:
    """Return what a role may do besides logs and traces, and what the watch may know of the account."""
    allowed = statements(template, f"{name}Role")
    assert allowed.pop("*") == (WATCHING if name == "Watch" else ANYWHERE)["*"]
    (log,) = [resource for resource in allowed if resource.startswith(f"<{name}Log")]
    assert allowed.pop(log) == LOGS
    return allowed


def topology_in(allowed: dict[str, list[str]]) -> list[str]:
    (resource,) = [name for name in allowed if "Topology" in name]
    return sorted(allowed.pop(resource))


def test_every_environment_has_the_resharding_stack(synthesised: Synthesised) -> None:
    assert of_type(synthesised("dev", None)["Reshard"], "AWS::StepFunctions::StateMachine")


def test_only_moving_functions_may_write_items_and_no_index_is_read(dev: Templates) -> None:
    template = dev["Reshard"]
    allowed = {name: role_of(template, name) for name in ("Advance", "Work", "Stop", "Operator", "Watch")}
    topology = {name: {each.partition(":")[2] for each in topology_in(it)} for name, it in allowed.items()}

    machine = "<Machine6FC8AE80>"
    requesting = {"BatchGetItem", "GetItem", "PutItem"}
    assert topology == {
        "Advance": {*requesting, "DeleteItem", "Scan", "UpdateItem"},
        "Work": {*requesting, "Scan", "UpdateItem"},
        "Stop": requesting,
        "Operator": requesting,
        "Watch": {*requesting, "Scan"},
    }
    assert allowed == {
        "Advance": {TABLE: ["dynamodb:Query", "dynamodb:Scan"]},
        "Work": {
            TABLE: [
                f"dynamodb:{action}"
                for action in (
                    "BatchGetItem",
                    "ConditionCheckItem",
                    "DeleteItem",
                    "GetItem",
                    "PutItem",
                    "Query",
                    "Scan",
                    "UpdateItem",
                )
            ]
        },
        "Stop": {},
        "Operator": {},
        "Watch": {
            machine: ["states:ListExecutions", "states:StartExecution"],
            "<Missed3BACDA05.Arn>": ["sqs:SendMessage"],
            STREAM: ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"],
        },
    }


def test_the_dispatcher_may_read_the_stream_start_the_machine_and_store_failed_batches(dev: Templates) -> None:
    allowed = role_of(dev["Reshard"], "Dispatch")
    (stream,) = [name for name in allowed if "TopologyStreamArn" in name]

    assert allowed.pop(stream) == [
        "dynamodb:DescribeStream",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:ListStreams",
    ]
    assert allowed.pop("<Machine6FC8AE80>") == ["states:StartExecution"]
    (queue,) = allowed
    assert queue.startswith("<Lost")
    assert set(allowed[queue]) <= {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"}


def test_the_machine_may_call_its_functions_and_itself(dev: Templates) -> None:
    allowed = statements(dev["Reshard"], "MachineRole")
    itself = "arn:<AWS::Partition>:states:<AWS::Region>:000000000000:stateMachine:dynashard-dev-reshard"
    (machine,) = of_type(dev["Reshard"], "AWS::StepFunctions::StateMachine").values()

    assert allowed.pop(itself) == ["states:StartExecution"]
    assert machine["Properties"]["StateMachineName"] == machine_name("dev") == "dynashard-dev-reshard"
    assert {action.split(":")[0] for action in allowed.pop("*")} == {"logs", "xray"}
    assert sorted(name.split("Live")[0] for name in allowed) == ["<Advance", "<Stop", "<Work"]
    assert {tuple(actions) for actions in allowed.values()} == {("lambda:InvokeFunction",)}


def test_a_stored_request_reaches_the_dispatcher_in_divisible_batches_and_is_never_just_dropped(dev: Templates) -> None:
    (topology,) = [
        each for name, each in of_type(dev["Data"], "AWS::DynamoDB::GlobalTable").items() if name == "Topology"
    ]
    (mapping,) = of_type(dev["Reshard"], "AWS::Lambda::EventSourceMapping").values()
    properties = mapping["Properties"]

    assert topology["Properties"]["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert properties["BisectBatchOnFunctionError"] is True
    assert properties["StartingPosition"] == "TRIM_HORIZON"
    assert short(properties["DestinationConfig"]["OnFailure"]["Destination"]).startswith("<Lost")
    # Lambda filters on nothing but this key.
    assert {name for each in properties["FilterCriteria"]["Filters"] for name in json.loads(each["Pattern"])} == {
        "dynamodb"
    }
    # Lambda asks whether the role may read the stream when the mapping is made.
    assert any(name.startswith("DispatchRoleDefaultPolicy") for name in mapping["DependsOn"])


def test_each_wait_ends_before_the_one_that_relies_on_it(dev: Templates) -> None:
    states = definition_in(dev["Reshard"])["States"]
    functions = of_type(dev["Reshard"], "AWS::Lambda::Function")
    timeouts = {name.split("Function")[0]: each["Properties"]["Timeout"] for name, each in functions.items()}
    slices = {
        int(each["Properties"]["Environment"]["Variables"]["SLICE_SECONDS"])
        for name, each in functions.items()
        if name.startswith("Work")
    }
    slice_ = states["Work"]["ItemProcessor"]["States"]["Slice"]

    assert slices == {240}
    assert timeouts["Work"] == 240 + 60
    assert timeouts["Work"] < slice_["TimeoutSeconds"]
    assert timeouts["Advance"] == ADVANCE_SECONDS < states["Advance"]["TimeoutSeconds"]
    assert timeouts["Stop"] < states["Stop"]["TimeoutSeconds"]
    assert GRACE_SECONDS < 15 * 60
    assert REST_SECONDS >= 1


def test_the_controller_waits_for_the_leases_and_operations_of_the_api(dev: Templates) -> None:
    (api,) = of_type(dev["Api"], "AWS::Lambda::Function").values()
    functions = of_type(dev["Reshard"], "AWS::Lambda::Function").values()
    variables = [each["Properties"]["Environment"]["Variables"] for each in functions]

    lease = api["Properties"]["Environment"]["Variables"]["TOPOLOGY_LEASE_SECONDS"]
    assert {each["TOPOLOGY_LEASE_SECONDS"] for each in variables} == {lease}
    assert {int(each["TOPOLOGY_OPERATION_SECONDS"]) for each in variables} == {api["Properties"]["Timeout"]}
    assert {each["TOPOLOGY_SKEW_SECONDS"] for each in variables} == {"1"}


def test_only_permanent_errors_are_not_retried_and_every_failure_is_recorded(dev: Templates) -> None:
    states = definition_in(dev["Reshard"])["States"]
    tasks = [state for state in states.values() if state["Type"] == "Task"]
    tasks.append(states["Work"]["ItemProcessor"]["States"]["Slice"])

    assert all(hasattr(errors, name) and not getattr(errors, name).retryable for name in HOPELESS)
    for task in tasks:
        assert task["Retry"][-1]["ErrorEquals"] == ["States.ALL"]
        assert task["Retry"][-1]["JitterStrategy"] == "FULL"
        assert task["Retry"][-1]["BackoffRate"] > 1
    for name in ("Advance", "Work", "Continue"):
        assert states[name]["Catch"][-1] == {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Stop"}


def test_histories_have_room_for_retries(dev: Templates) -> None:
    assert EVENTS * 3 < HISTORY
    assert definition_in(dev["Reshard"])["States"]["Work"]["MaxConcurrency"] == 8


def test_the_watch_checks_for_quiet_counts_every_hour_with_the_growth_settings_of_the_api(dev: Templates) -> None:
    rules = [each["Properties"] for each in of_type(dev["Reshard"], "AWS::Events::Rule").values()]
    (api,) = of_type(dev["Api"], "AWS::Lambda::Function").values()
    growth = {
        name: {key: value for key, value in each["Properties"]["Environment"]["Variables"].items() if "GROWTH" in key}
        for name, each in of_type(dev["Reshard"], "AWS::Lambda::Function").items()
    }

    assert {rule["ScheduleExpression"]: rule["Targets"][0].get("Input") for rule in rules} == {
        "rate(15 minutes)": None,
        "rate(1 hour)": '{"look":"shrink"}',
    }
    (watch,) = [variables for name, variables in growth.items() if name.startswith("Watch")]
    assert watch == {
        "GROWTH_MODE": "on",
        "GROWTH_COOLDOWN_SECONDS": "300",
        "GROWTH_QUIET_SECONDS": "86400",
        "GROWTH_MOST_MINUTES": "10",
        "GROWTH_MOVER_SHARE": "0.2",
    }
    assert watch.items() <= api["Properties"]["Environment"]["Variables"].items()
    assert all(variables == watch for variables in growth.values())


def test_the_stream_is_read_by_the_names_of_the_stored_format(dev: Templates) -> None:
    (mapping,) = of_type(dev["Reshard"], "AWS::Lambda::EventSourceMapping").values()

    patterns = [json.loads(each["Pattern"])["dynamodb"] for each in mapping["Properties"]["FilterCriteria"]["Filters"]]

    assert all(schema.TOPOLOGY_COUNT in each["NewImage"] for each in patterns)
