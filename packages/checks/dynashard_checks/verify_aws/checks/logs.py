"""Checks of logs: metrics that CloudWatch makes of their lines, and the delivery of the gateway's access log."""

import json
from collections.abc import Sequence
from typing import Any, Final

from aws_lambda_powertools.metrics import MetricUnit

from dynashard_checks.verify_aws.check import Check, Outcome, differs, holds, unclear
from dynashard_checks.verify_aws.checks.throttles import metric_sum
from dynashard_checks.verify_aws.context import Context
from dynashard_serving.telemetry.metric_names import ENVIRONMENT, NAMESPACE
from dynashard_serving.telemetry.powertools import open_metrics

_METRIC: Final = "VerifyAws"
_VALUES: Final = (1.0, 2.0, 3.0)
_STREAM: Final = "lines"
_ARRIVAL_SECONDS: Final = 300.0
_MOST_POLICIES: Final = 10


def embedded_metrics(context: Context) -> Outcome:
    """Write a line as the functions do into a log, and wait for its metric."""
    group, logs, now = context.scratch.log_group("metrics"), context.client("logs"), context.clock.now()
    # Lambda's logs are read for metrics by themselves; other lines need the header.
    logs.meta.events.register("before-sign.cloudwatch-logs.PutLogEvents", _in_metric_format)
    logs.create_log_stream(logGroupName=group, logStreamName=_STREAM)
    metrics = open_metrics(context.scratch.run)
    for value in _VALUES:
        metrics.add_metric(_METRIC, MetricUnit.Count, value)
    line = json.dumps(metrics.serialize_metric_set())
    logs.put_log_events(
        logGroupName=group, logStreamName=_STREAM, logEvents=[{"timestamp": int(now * 1000), "message": line}]
    )
    total = metric_sum(context, _METRIC, {ENVIRONMENT: context.scratch.run}, NAMESPACE)
    return judge_sum(total)


def _in_metric_format(request: Any, **_event: Any) -> None:
    request.headers["x-amzn-logs-format"] = "json/emf"


def judge_sum(total: float) -> Outcome:
    """Judge the sum of a metric that was written with three values in one line."""
    if total == sum(_VALUES):
        return holds(f"the metric of a line with {len(_VALUES)} values sums to {total:g}")
    return differs(f"the metric sums to {total:g} instead of {sum(_VALUES):g}")


def access_log(context: Context) -> Outcome:
    """Call the API, wait for the line in its access log, and count the account's resource policies of logs."""
    context.environment.call("GET", "/v1/health", token="")
    logs = context.client("logs")
    arns = _log_groups(context)
    if not arns:
        return unclear("the API's stage has no access log")
    group = arns[0].partition(":log-group:")[2].removesuffix(":*")
    since = int((context.clock.now() - 60) * 1000)
    events: Sequence[Any] = context.until(
        lambda: logs.filter_log_events(logGroupName=group, startTime=since, limit=1)["events"],
        seconds=_ARRIVAL_SECONDS,
        every=10.0,
    )
    policies = [name for page in _policies(logs) for name in page]
    return judge_delivery(arrived=bool(events), policies=len(policies))


def judge_delivery(*, arrived: bool, policies: int) -> Outcome:
    """Judge whether a line of the access log arrived, in an account with so many resource policies of logs."""
    account = f"the account has {policies} of {_MOST_POLICIES} resource policies of logs"
    if arrived:
        return holds(f"a line arrived; {account}")
    return differs(f"no line arrived within {_ARRIVAL_SECONDS:.0f} seconds; {account}")


def _log_groups(context: Context) -> list[str]:
    host = context.environment.stack("Api")["ApiUrl"].split("/")[2]
    stages = context.client("apigatewayv2").get_stages(ApiId=host.partition(".")[0])["Items"]
    return [stage["AccessLogSettings"]["DestinationArn"] for stage in stages if "AccessLogSettings" in stage]


def _policies(logs: Any) -> Sequence[Sequence[str]]:
    return [
        [policy["policyName"] for policy in page["resourcePolicies"]]
        for page in logs.get_paginator("describe_resource_policies").paginate()
    ]


CHECKS: Final = (
    Check(
        "access-log",
        "the gateway's access log arrives; it needs one of the account's ten resource policies of logs",
        access_log,
        seconds=300,
        needs_api=True,
    ),
    Check(
        "embedded-metrics",
        "CloudWatch makes a metric of a line in the embedded metric format, with all values of a list",
        embedded_metrics,
        # A metric is billed by the hour.
        dollars=0.02,
        seconds=600,
    ),
)
