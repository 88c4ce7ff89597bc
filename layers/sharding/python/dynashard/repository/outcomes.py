"""What callers are told of operations that did not settle, and what settles a transaction."""

from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import EngineError, OutcomeUnknownError, TransactionCanceledError, TransactionConflictError
from dynashard.repository.store import Store
from dynashard.schema import PK, SK

SETTLED: Final = "dynashard:settled"
"""The partition key of what the transactions delete that settle others. Nothing is ever stored there."""
_MISMATCH: Final = "IdempotentParameterMismatchException"


def unsettled(entity: EntityDefinition[Any], operation: str) -> TransactionConflictError:
    """An item did not come to rest in time."""
    return TransactionConflictError(
        f"{operation}: an item of {entity.name} was being moved or written by others all the time. Try again.",
        operation=operation,
    )


def unproved(cancelled: TransactionCanceledError) -> OutcomeUnknownError:
    """A transaction was refused after an attempt that may have been executed, or may still be.

    A failed attempt does not use its token up, so the refusal of a later one says nothing of an earlier one.
    """
    return OutcomeUnknownError(
        f"{cancelled.operation}: an earlier attempt may have been applied, or may still be; then it was refused.",
        operation=cancelled.operation,
        aws_code=cancelled.aws_code,
    )


def settled_by_token(store: Store, token: str) -> bool:
    """Whether the transaction of a token was done; if not, it can never be done any more.

    A harmless transaction with the same token shows it. DynamoDB refuses it as a mismatch if the token's transaction
    was done. If DynamoDB accepts it, the token is used up, and the other transaction is refused whenever it comes.
    DynamoDB remembers tokens for ten minutes, which is longer than any operation.

    Raises:
        EngineError: there was no usable answer.

    Cost: 2 write units, 1 round trip.
    """
    nowhere = {PK: {"S": SETTLED}, SK: {"S": token}}
    request = {"TransactItems": [{"Delete": {"TableName": store.table, "Key": nowhere}}], "ClientRequestToken": token}
    try:
        store.transport.call("TransactWriteItems", request)
    except EngineError as error:
        if error.aws_code == _MISMATCH:
            return True
        raise
    return False
