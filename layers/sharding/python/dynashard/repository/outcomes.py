"""Errors of operations without a certain outcome, and the request that determines the outcome of a transaction."""

from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import EngineError, OutcomeUnknownError, TransactionConflictError
from dynashard.repository.store import Store
from dynashard.schema import PK, SK
from dynashard.transport.attempts import TOKEN_MISMATCH

SETTLED: Final = "dynashard:settled"
"""The partition key of the items that settling transactions delete. Nothing is ever stored there."""


def unsettled(entity: EntityDefinition[Any], operation: str) -> TransactionConflictError:
    """Return the error for an item that is still being moved or written after the last retry."""
    return TransactionConflictError(
        f"{operation}: an item of {entity.name} was being moved or written by others all the time. Try again.",
        operation=operation,
    )


def answered_late(operation: str) -> OutcomeUnknownError:
    """Return the error for a success that arrived too late to be reported as one."""
    return OutcomeUnknownError(
        f"{operation}: the answer came after the lease of the shard count had ended, and nothing stored proves whether "
        "the write took effect. Read the item before you decide.",
        operation=operation,
    )


def settled_by_token(store: Store, token: str) -> bool:
    """Return whether the transaction with a client request token was executed; if not, it can no longer be.

    Sends a harmless transaction with the same token. DynamoDB refuses it as a mismatch if the token's transaction was
    executed. If DynamoDB accepts it, the token is used up, and the other transaction is refused whenever it arrives.
    DynamoDB remembers tokens for ten minutes, which is longer than any operation.

    Raises:
        EngineError: there was no usable answer.

    Cost: 2 write units, 1 round trip.
    """
    delete = {"TableName": store.table, "Key": {PK: {"S": SETTLED}, SK: {"S": token}}}
    try:
        store.transport.call("TransactWriteItems", {"TransactItems": [{"Delete": delete}], "ClientRequestToken": token})
    except EngineError as error:
        if error.aws_code == TOKEN_MISMATCH:
            return True
        raise
    return False
