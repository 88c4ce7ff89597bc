"""The optional pre-warm stack: permissions and timeouts."""

import pytest

from dynashard_cdk.prewarm_machine import MACHINE_SECONDS, STEP_SECONDS
from dynashard_serving.aws_services import CONNECT_SECONDS, READ_SECONDS
from dynashard_serving.prewarm import errors
from dynashard_serving.prewarm.steps import STOP_LOSS_AFTER_SECONDS
from tests.infra.conftest import Synthesised
from tests.infra.prewarm_world import definition_in
from tests.infra.templates import Templates, alarms_in, of_type, short, statements

pytestmark = pytest.mark.infra

TABLE = "<ExportsOutputFnGetAttTableArn48754775>"
IDEMPOTENCY = "<ExportsOutputFnGetAttIdempotencyArnA57181EA>"
MEMORY = "arn:<AWS::Partition>:ssm:<AWS::Region>:000000000000:parameter/dynashard/{}/prewarm"
TRACES = {"*": ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]}
LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]


def test_pre_warming_and_its_role_exist_only_with_the_setting(synthesised: Synthesised) -> None:
    plain = synthesised("dev", None)

    stacks = ("Api", "Changes", "Commands", "Data", "Monitoring", "Reshard", "Writer")
    assert [path.name for path in plain.files] == [f"Dynashard-dev-{stack}.template.json" for stack in stacks]
    assert of_type(plain["Data"], "AWS::IAM::Role") == {}


def test_the_native_mode_may_only_change_the_tables_and_read_earlier_runs(dev: Templates) -> None:
    allowed = statements(dev["Prewarm"], "StepRole")

    assert allowed == {
        "<StepLog2C010704.Arn>": LOGS,
        TABLE: ["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
        IDEMPOTENCY: ["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
        MEMORY.format("dev"): ["ssm:GetParameter"],
        **TRACES,
    }


def test_the_provisioned_mode_may_also_set_its_one_schedule(prod: Templates) -> None:
    allowed = statements(prod["Prewarm"], "StepRole")

    assert allowed == {
        "<StepLog2C010704.Arn>": LOGS,
        TABLE: ["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
        IDEMPOTENCY: ["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
        MEMORY.format("prod"): ["ssm:GetParameter", "ssm:PutParameter"],
        "arn:<AWS::Partition>:scheduler:<AWS::Region>:000000000000:schedule/default/dynashard-prod-stop-loss": [
            "scheduler:CreateSchedule",
            "scheduler:GetSchedule",
            "scheduler:UpdateSchedule",
        ],
        "<ExportsOutputFnGetAttStopLossRole27D365ABArnEAAC9755>": ["iam:PassRole"],
        **TRACES,
    }


def test_the_entry_may_start_the_machine_and_the_machine_may_call_the_step(prod: Templates) -> None:
    entry = statements(prod["Prewarm"], "EntryRole")
    machine = statements(prod["Prewarm"], "MachineRole")

    assert entry == {"<EntryLog01D3C813.Arn>": LOGS, "<Machine6FC8AE80>": ["states:StartExecution"], **TRACES}
    assert machine.pop("<StepLiveB1EDD212>") == ["lambda:InvokeFunction"]
    assert {action.split(":")[0] for action in machine.pop("*")} == {"logs", "xray"}
    assert machine == {}


def test_the_stop_loss_acts_under_a_role_of_the_data_stack_that_can_only_change_the_table(prod: Templates) -> None:
    allowed = statements(prod["Data"], "StopLossRole")
    (role,) = of_type(prod["Data"], "AWS::IAM::Role").values()

    assert allowed == {"<Table.Arn>": ["dynamodb:UpdateTable"]}
    assert role["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {
        "Service": "scheduler.amazonaws.com"
    }
    assert "aws:SourceAccount" in str(role["Properties"]["AssumeRolePolicyDocument"])


def test_the_role_of_the_stop_loss_cannot_go_while_the_pre_warm_stack_stands(prod: Templates) -> None:
    exported = {short(output["Export"]["Name"]) for output in prod["Data"]["Outputs"].values() if "Export" in output}

    imported = [name for name in exported if "StopLossRole" in name]

    assert imported
    assert imported[0].split(":")[-1] in str(prod["Prewarm"])


def test_each_wait_ends_before_the_one_that_relies_on_it(prod: Templates) -> None:
    (resource,) = of_type(prod["Prewarm"], "AWS::CloudFormation::CustomResource").values()
    functions = of_type(prod["Prewarm"], "AWS::Lambda::Function").values()
    definition = definition_in(prod["Prewarm"])

    function_seconds = max(function["Properties"]["Timeout"] for function in functions)
    step_seconds = {s["TimeoutSeconds"] for s in definition["States"].values() if s["Type"] == "Task"}

    assert 2 * (CONNECT_SECONDS + READ_SECONDS) < function_seconds < min(step_seconds)
    assert step_seconds == {STEP_SECONDS}
    assert definition["TimeoutSeconds"] == MACHINE_SECONDS < resource["Properties"]["ServiceTimeout"]
    assert resource["Properties"]["ServiceTimeout"] <= STOP_LOSS_AFTER_SECONDS


def test_the_machine_knows_the_steps_errors_by_their_names(prod: Templates) -> None:
    definition = definition_in(prod["Prewarm"])

    named = {
        error
        for state in definition["States"].values()
        for retrier in state.get("Retry", [])
        for error in retrier["ErrorEquals"]
    }

    assert named - {"States.ALL"} == {
        errors.NotYetError.__name__,
        errors.PrewarmRefusedError.__name__,
        errors.PrewarmInterruptedError.__name__,
    }


def test_every_path_to_the_report_goes_through_the_return_to_on_demand(prod: Templates) -> None:
    states = definition_in(prod["Prewarm"])["States"]

    def exits(state: dict[str, object]) -> set[str]:
        return {str(part) for part in _following(state)}

    before = {name for name, state in states.items() if "Report" in exits(state)}

    assert before == {"Restore", "StandDown"}


def _following(state: dict[str, object]) -> list[object]:
    found: list[object] = [state[key] for key in ("Next", "Default") if key in state]
    for key in ("Catch", "Choices"):
        branches = state.get(key, [])
        assert isinstance(branches, list)
        found += [branch["Next"] for branch in branches]
    return found


def test_an_alarm_rings_for_every_end_except_success(prod: Templates) -> None:
    alarm = alarms_in(prod["Prewarm"])["prewarm-failed"]

    watched = {metric["MetricStat"]["Metric"]["MetricName"] for metric in alarm["Metrics"] if "MetricStat" in metric}

    assert watched == {"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"}
    assert alarm["Threshold"] == 1


def test_an_alarm_rings_for_a_table_that_stays_provisioned(dev: Templates, prod: Templates) -> None:
    alarm = alarms_in(prod["Prewarm"])["prewarm-not-returned"]

    (_, units) = alarm["Metrics"]
    assert units["MetricStat"]["Metric"]["MetricName"] == "ProvisionedWriteCapacityUnits"
    assert units["MetricStat"]["Period"] * alarm["DatapointsToAlarm"] == 2 * 3600
    # An on-demand table has no such metric: then the alarm ends.
    assert alarm["Metrics"][0]["Expression"] == "FILL(events, 0)"
    # The native way does not change the mode.
    assert "prewarm-not-returned" not in alarms_in(dev["Prewarm"])


def test_the_resource_is_deleted_before_anything_it_needs(prod: Templates) -> None:
    (resource,) = of_type(prod["Prewarm"], "AWS::CloudFormation::CustomResource").values()
    needed = [
        *of_type(prod["Prewarm"], "AWS::Lambda::Function"),
        *of_type(prod["Prewarm"], "AWS::IAM::Role"),
        *of_type(prod["Prewarm"], "AWS::IAM::Policy"),
        *of_type(prod["Prewarm"], "AWS::StepFunctions::StateMachine"),
    ]

    assert [name for name in needed if name not in resource["DependsOn"]] == []
