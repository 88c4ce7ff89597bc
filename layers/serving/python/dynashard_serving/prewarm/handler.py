"""Entries of the pre-warm function: `begin` for CloudFormation, `step` for the state machine."""

import json
import os
import time
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.request import Request, urlopen

from aws_lambda_powertools.utilities.data_classes import CloudFormationCustomResourceEvent

from dynashard_serving import aws_services
from dynashard_serving.prewarm.answer import Outcome, Send, answer
from dynashard_serving.prewarm.errors import PrewarmError
from dynashard_serving.prewarm.plan import Limits
from dynashard_serving.prewarm.steps import Clients, Config, Steps
from dynashard_serving.telemetry.powertools import PREWARM, open_logger

logger = open_logger(PREWARM)


def step(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run one step of the state machine.

    Raises:
        PrewarmError: the step cannot be done now, or never. The state machine decides by its class. It has no
            traceback, because Lambda would log it.
    """
    try:
        return _steps().run(event)
    except PrewarmError as error:
        raise error.with_traceback(None) from None


def begin(event: Mapping[str, Any], _context: object) -> None:
    """Start a run for a request of CloudFormation, which the run answers when it ends."""
    start(event, client=aws_services.client("stepfunctions"), machine=os.environ["STATE_MACHINE_ARN"], send=put)


def start(event: Mapping[str, Any], *, client: Any, machine: str, send: Send) -> None:
    """Start a run, once for each request however often it is delivered."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 -- imported where it is needed

    kept = ("ResponseURL", "RequestType", "StackId", "RequestId", "LogicalResourceId", "PhysicalResourceId")
    request = {key: event[key] for key in kept if key in event}
    asked = CloudFormationCustomResourceEvent(dict(event))
    data = {
        "mode": "restore" if asked.request_type == "Delete" else "warm",
        "request": request,
        "wanted": asked.resource_properties,
    }
    try:
        # The name makes a second delivery of the same request the same run.
        client.start_execution(stateMachineArn=machine, name=asked.request_id, input=json.dumps(data))
    except client.exceptions.ExecutionAlreadyExists:
        logger.info("a second delivery of request %s: its run answers it", asked.request_id)
    except (BotoCoreError, ClientError) as error:
        outcome = Outcome(ok=False, deployed=False, reason=f"no run could be started: {error}", dollars=0.0)
        send(asked.response_url, answer(request, outcome))


def config_from(environ: Mapping[str, str]) -> Config:
    """What this deployment is about, from the function's environment."""

    def number(name: str) -> int | None:
        return int(environ[name]) if environ.get(name) else None

    return Config(
        table=environ["TABLE_NAME"],
        idempotency=environ["IDEMPOTENCY_TABLE"],
        memory=environ["MEMORY_NAME"],
        limits=Limits(
            ceiling_write_units=int(environ["CEILING_WRITE_UNITS"]),
            dollars_per_write_unit_hour=float(environ["DOLLARS_PER_WRITE_UNIT_HOUR"]),
            dollars_per_read_unit_hour=float(environ["DOLLARS_PER_READ_UNIT_HOUR"]),
        ),
        stop_loss=environ.get("STOP_LOSS_NAME", ""),
        stop_loss_role=environ.get("STOP_LOSS_ROLE_ARN", ""),
        max_read_units=number("MAX_READ_UNITS"),
        max_write_units=number("MAX_WRITE_UNITS"),
    )


def put(url: str, body: bytes) -> None:
    """Send an answer to the address that CloudFormation gave."""
    if not url.startswith("https://"):
        raise ValueError("CloudFormation's address is https")
    # It is signed without a content type, so none may be sent.
    request = Request(url, data=body, method="PUT", headers={"Content-Type": ""})  # noqa: S310 -- checked above
    with urlopen(request, timeout=aws_services.READ_SECONDS):  # noqa: S310 -- checked above
        pass


@cache
def _steps() -> Steps:
    return Steps(
        Clients(
            dynamodb=aws_services.client("dynamodb"),
            ssm=aws_services.client("ssm"),
            scheduler=aws_services.client("scheduler"),
        ),
        config_from(os.environ),
        clock=time.time,
        send=put,
        log=logger.info,
    )
