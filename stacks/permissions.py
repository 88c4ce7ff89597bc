"""Statements of the functions' roles: exactly the actions that a function needs, on exactly its resources."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secrets

from dynashard import schema
from stacks.data import DataStack

WRITE_ACTIONS: Final = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)
"""What writes items one by one and in transactions. It needs Query for pieces of attachments and sources of copies."""
ITEM_ACTIONS: Final = (*WRITE_ACTIONS, "dynamodb:BatchWriteItem")
"""What serves items. It lists by Query alone, so it needs no Scan."""
MOVE_ACTIONS: Final = (*WRITE_ACTIONS, "dynamodb:Scan")
"""What moves items. It reads whole families by Scan and single partitions shard by shard, so it needs no index."""
IDEMPOTENCY_ACTIONS: Final = ("dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
TOPOLOGY_ACTIONS: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem")
"""What reads views, writes the first record of an entity, and requests resizes. Only the controller writes more."""
CONTROLLER_ACTIONS: Final = (*TOPOLOGY_ACTIONS, "dynamodb:DeleteItem", "dynamodb:Scan", "dynamodb:UpdateItem")
STREAM_ACTIONS: Final = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)
RECEIVE_ACTIONS: Final = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)


def allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    """Allow exactly these actions on exactly these resources."""
    return iam.PolicyStatement(actions=list(actions), resources=list(resources))


def metrics_read() -> iam.PolicyStatement:
    """Allow to read metrics; CloudWatch has no resources for that."""
    return allow(["cloudwatch:GetMetricData"], ["*"])


def writing_statements(data: DataStack, actions: Sequence[str] = WRITE_ACTIONS) -> list[iam.PolicyStatement]:
    """Allow to write items under a view of the topology."""
    return [
        allow(actions, [data.table.table_arn]),
        allow(TOPOLOGY_ACTIONS, [data.topology.table_arn]),
        # Explain a throttle without a reason by the load of the table and its limit.
        metrics_read(),
        allow(["dynamodb:DescribeTable"], [data.table.table_arn]),
    ]


def serving_statements(data: DataStack, cursor_secret: secrets.ISecret) -> list[iam.PolicyStatement]:
    """Allow to serve items to callers."""
    indexes = [f"{data.table.table_arn}/index/{slot}" for slot in schema.INDEX_SLOTS]
    return [
        *writing_statements(data, ITEM_ACTIONS),
        allow(["dynamodb:Query"], indexes),
        allow(IDEMPOTENCY_ACTIONS, [data.idempotency.table_arn]),
        allow(["secretsmanager:GetSecretValue"], [cursor_secret.secret_arn]),
    ]
