"""A stop-loss: a schedule of AWS that deletes an expensive scratch table, also if this process dies.

EventBridge Scheduler calls DeleteTable itself, with a role that may delete this one table. It begins when the check
should have ended, and tries again every five minutes, because DynamoDB refuses to delete a table that is changing.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynashard_checks.verify_aws.scratch import PREFIX, TAG, Scratch

BEGINS_AFTER_SECONDS: Final = 3_600
EVERY: Final = "rate(5 minutes)"
LASTS_SECONDS: Final = 24 * 3_600
"""A table that is being provisioned can be deleted only afterwards, which may take hours."""
_TARGET: Final = "scheduler:::aws-sdk:dynamodb:deleteTable"
_ROLE_PATH: Final = "/dynashard-verify/"
_POLICY: Final = "delete-table"
_KNOWN_SECONDS: Final = 180.0
"""A new role is known to other services only after some seconds."""
_EVERY_SECONDS: Final = 5.0
_GONE: Final = frozenset({"ResourceNotFoundException", "NoSuchEntity"})
_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException"})


class StopLossError(Exception):
    """The stop-loss of a table cannot be set, so nothing expensive may begin."""


def arm(scratch: Scratch, name: str) -> None:
    """Set the stop-loss of a scratch table that is created next.

    It is removed after its table. While the table cannot be removed, the stop-loss stays.

    Args:
        scratch: the resources of the run.
        name: the end of the table's name.

    Raises:
        StopLossError: it is not certain that AWS will delete the table.

    Cost: nothing; Scheduler's first calls of a month are free.
    """
    table = scratch.named(name)
    _defer(scratch, table)
    try:
        role = _create_role(scratch, table)
        _create_schedule(scratch, table, role)
        state = scratch.client("scheduler").get_schedule(Name=table)["State"]
    except (ClientError, BotoCoreError) as error:
        raise StopLossError(f"the stop-loss cannot be set, so nothing was provisioned: {error}") from error
    if state != "ENABLED":
        raise StopLossError(f"the stop-loss is {state}, so nothing was provisioned")


def defer_leftovers(scratch: Scratch) -> None:
    """Note how to remove the stop-losses of earlier runs, before their tables are noted, which are removed first.

    Notes none if the credentials may not list schedules or roles. A stop-loss that stays costs nothing, and its
    schedule deletes itself after a day.
    """
    names = set()
    try:
        for page in scratch.client("scheduler").get_paginator("list_schedules").paginate(NamePrefix=PREFIX):
            # A pre-warm of an environment called `verify` has a schedule with this prefix, too.
            names |= {each["Name"] for each in page["Schedules"] if each["Target"]["Arn"].endswith(_TARGET)}
        for page in scratch.client("iam").get_paginator("list_roles").paginate(PathPrefix=_ROLE_PATH):
            names |= {role["RoleName"] for role in page["Roles"] if role["RoleName"].startswith(PREFIX)}
    except ClientError as error:
        if error.response["Error"]["Code"] not in _DENIED:
            raise
        return
    for name in sorted(names):
        _defer(scratch, name)


def _create_role(scratch: Scratch, table: str) -> str:
    """Create the role that may delete the table, and return its ARN."""
    iam, region = scratch.client("iam"), scratch.client("dynamodb").meta.region_name
    caller = scratch.client("sts").get_caller_identity()
    partition, account = str(caller["Arn"]).split(":")[1], caller["Account"]
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": "scheduler.amazonaws.com"},
        "Condition": {"StringEquals": {"aws:SourceAccount": account}},
    }
    created = iam.create_role(
        RoleName=table,
        Path=_ROLE_PATH,
        Description="Deletes one scratch table of dynashard verify-aws",
        AssumeRolePolicyDocument=_policy(trust),
        Tags=[{"Key": TAG, "Value": scratch.run}],
    )
    resource = f"arn:{partition}:dynamodb:{region}:{account}:table/{table}"
    allowed = {"Effect": "Allow", "Action": "dynamodb:DeleteTable", "Resource": resource}
    iam.put_role_policy(RoleName=table, PolicyName=_POLICY, PolicyDocument=_policy(allowed))
    return str(created["Role"]["Arn"])


def _policy(statement: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _create_schedule(scratch: Scratch, table: str, role: str) -> None:
    """Create the schedule; it is refused until Scheduler knows the role."""
    scheduler, partition = scratch.client("scheduler"), role.split(":")[1]
    begins, end = scratch.now() + BEGINS_AFTER_SECONDS, scratch.now() + _KNOWN_SECONDS
    while True:
        try:
            scheduler.create_schedule(
                Name=table,
                State="ENABLED",
                ScheduleExpression=EVERY,
                StartDate=datetime.fromtimestamp(begins, UTC),
                EndDate=datetime.fromtimestamp(begins + LASTS_SECONDS, UTC),
                FlexibleTimeWindow={"Mode": "OFF"},
                ActionAfterCompletion="DELETE",
                Target={
                    "Arn": f"arn:{partition}:{_TARGET}",
                    "RoleArn": role,
                    "Input": json.dumps({"TableName": table}),
                },
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationException" or scratch.now() > end:
                raise
            scratch.sleep(_EVERY_SECONDS)
        else:
            return


def _defer(scratch: Scratch, table: str) -> None:
    scratch.defer(f"stop-loss of {table}", partial(_disarm, scratch, table))


def _disarm(scratch: Scratch, table: str) -> None:
    if f"table {table}" in scratch.present:
        raise OSError("its table is still there, and only the stop-loss may delete it now")
    scheduler, iam = scratch.client("scheduler"), scratch.client("iam")
    _removed(scheduler.delete_schedule, Name=table)
    _removed(iam.delete_role_policy, RoleName=table, PolicyName=_POLICY)
    _removed(iam.delete_role, RoleName=table)


def _removed(remove: Callable[..., object], **which: str) -> None:
    """Remove a part, which may be gone or was never created."""
    try:
        remove(**which)
    except ClientError as error:
        if error.response["Error"]["Code"] not in _GONE:
            raise
