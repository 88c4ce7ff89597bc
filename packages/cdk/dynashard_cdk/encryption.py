"""Encryption by a key of the customer, instead of keys that AWS owns or manages."""

from typing import Any, Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from dynashard_cdk.permissions import key_use
from dynashard_cdk.settings import Settings

_KEY: Final = "CustomerKey"


def customer_key(scope: Construct, settings: Settings) -> kms.IKey | None:
    """Return the key of the settings, for resources of the scope's stack; None without one."""
    if settings.encryption_key is None:
        return None
    stack = Stack.of(scope)
    found = stack.node.try_find_child(_KEY)
    key: kms.IKey = found if found is not None else kms.Key.from_key_arn(stack, _KEY, settings.encryption_key)  # type: ignore[assignment]
    return key


def queue_encryption(scope: Construct, settings: Settings) -> dict[str, Any]:
    """Return the properties of a queue that say how it is encrypted."""
    key = customer_key(scope, settings)
    if key is None:
        return {"encryption": sqs.QueueEncryption.SQS_MANAGED}
    return {"encryption": sqs.QueueEncryption.KMS, "encryption_master_key": key}


def key_statements(scope: Construct, settings: Settings) -> list[iam.PolicyStatement]:
    """Allow a function's role to use the key, only through the services that hold the data."""
    if settings.encryption_key is None:
        return []
    return [key_use(scope, settings.encryption_key, ("dynamodb", "secretsmanager", "sqs"))]
