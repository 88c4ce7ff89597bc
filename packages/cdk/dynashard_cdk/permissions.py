"""Statements of the functions' roles: exactly the actions that a function needs, on exactly its resources."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import IConstruct

# Each list is exactly what its function calls: tests/engine/serving/test_roles.py and tests/infra/test_reshard_run.py
# fail if one lacks an action, and if one has an action that nothing needs.
WRITE_ACTIONS: Final = (
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
)
"""What writes items one by one and in transactions. While a count changes, creates also update relocation markers.

An item that was stored late is moved with a check that its unique values are still reserved for it.
"""
ITEM_ACTIONS: Final = (*WRITE_ACTIONS, "dynamodb:BatchGetItem", "dynamodb:Query")
"""What serves items, or maintains what is derived from them. It lists by Query alone, so it needs no Scan."""
BATCH_ACTIONS: Final = (*ITEM_ACTIONS, "dynamodb:BatchWriteItem")
"""What serves items and batches of writes."""
CHECK_ACTIONS: Final = ("dynamodb:Query", "dynamodb:Scan")
"""What checks whether shards are empty before the next phase: those of one partition, or of a whole family."""
MOVE_ACTIONS: Final = (*WRITE_ACTIONS, "dynamodb:BatchGetItem", *CHECK_ACTIONS)
"""What moves items. It reads whole families by Scan and single partitions shard by shard, so it needs no index."""
IDEMPOTENCY_ACTIONS: Final = ("dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
TOPOLOGY_ACTIONS: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem")
"""What reads views, writes the first record of an entity, and requests, pauses and aborts resizes."""
TOPOLOGY_SCAN_ACTIONS: Final = (*TOPOLOGY_ACTIONS, "dynamodb:Scan")
"""What also finds the records of all partitions of a family."""
WORK_ACTIONS: Final = (*TOPOLOGY_SCAN_ACTIONS, "dynamodb:UpdateItem")
"""What also stores how far it has come."""
CONTROLLER_ACTIONS: Final = (*WORK_ACTIONS, "dynamodb:DeleteItem")
"""What also deletes the progress of resizes that are complete."""
STREAM_ACTIONS: Final = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)
READ_STREAM_ACTIONS: Final = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
"""What looks at a stream whose ARN it knows."""
RECEIVE_ACTIONS: Final = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)
KEY_ACTIONS: Final = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
"""What DynamoDB, SQS and Secrets Manager do with a key of the customer for their callers."""


def allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    """Allow exactly these actions on exactly these resources."""
    return iam.PolicyStatement(actions=list(actions), resources=list(resources))


def metrics_read() -> iam.PolicyStatement:
    """Allow to read metrics; CloudWatch has no resources for that."""
    return allow(["cloudwatch:GetMetricData"], ["*"])


def mappings_read() -> iam.PolicyStatement:
    """Allow to list the event source mappings of a stream; Lambda has no resources for that."""
    return allow(["lambda:ListEventSourceMappings"], ["*"])


def key_use(scope: IConstruct, key_arn: str, services: Sequence[str]) -> iam.PolicyStatement:
    """Allow to use a key of the customer, only through the services that hold the data."""
    region = Stack.of(scope).region
    through = [f"{service}.{region}.amazonaws.com" for service in services]
    statement = allow(KEY_ACTIONS, [key_arn])
    statement.add_condition("StringEquals", {"kms:ViaService": through})
    return statement
