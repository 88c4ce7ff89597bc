"""`Idempotency-Key` on creates: Powertools Idempotency on a table of its own, over the layer's transport.

A key is one tenant's, one route's. What is kept is only what the answer adds to the request (identifier, revision,
stamps, defaults): the retry brings the rest again, and its hash must be the first one's. Failed creates are not
kept, so the retry of an error is a new attempt.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from dynashard import schema
from dynashard.errors import ConditionFailedError, DynashardError
from dynashard.transport.interface import Transport, Wire
from functions.api.bodies import Document, written
from functions.api.incoming import Incoming
from functions.api.problems import ProblemError

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer

KEPT_SECONDS: Final = 24 * 60 * 60
MAX_KEY_LENGTH: Final = 255
_PREFIX: Final = "create"
_FALLBACK_MILLISECONDS: Final = 30_000


class IdempotentCreates:
    """Creates that answer a repeated request as they answered the first.

    Powertools' store, and boto3 with it, is imported by the first request that needs it.

    Args:
        table: name of the idempotency table.
        transport: how it is reached.
    """

    def __init__(self, table: str, transport: Transport) -> None:
        self._table = table
        self._transport = transport

    @cached_property
    def _store(self) -> "DynamoDBPersistenceLayer":
        from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer  # noqa: PLC0415

        client: Any = _TransportClient(self._transport)
        return DynamoDBPersistenceLayer(
            table_name=self._table,
            key_attr=schema.IDEMPOTENCY_KEY,
            expiry_attr=schema.IDEMPOTENCY_TTL,
            boto3_client=client,
        )

    def run(
        self, incoming: Incoming, key: str, *, route: str, body: Document, create: Callable[[], Document]
    ) -> tuple[Document, bool]:
        """Create once for this key.

        Args:
            incoming: the request.
            key: the value of its `Idempotency-Key`.
            route: the route the key belongs to.
            body: the request's body.
            create: creates, and returns the new item's representation.

        Returns:
            The representation, and whether it is an earlier request's answer.

        Raises:
            ProblemError: 400 for a key that cannot be used, 409 while the first request is under way, 422 if the
                key came with another body.

        Cost: 2 writes, or 1 for a repeated request, in the idempotency table, besides the create.
        """
        _refuse_unusable(key)
        replayed: list[Document] = []
        created: list[Document] = []

        def once(*, request: Document) -> Document:
            created.append(create())
            return _added(created[0], request["body"])

        request = {"tenant": incoming.tenant, "route": route, "key": key, "body": body}
        guarded = self._guarded(once, replayed, incoming.context)
        try:
            kept = _translated(lambda: guarded(request=request))
        except DynashardError:
            if not created:
                raise
            # The item is there; only the record of it failed. Saying so beats an error that invites a repeat.
            return created[0], False
        return _restored(kept, body), bool(replayed)

    def _guarded(
        self, once: Callable[..., Document], replayed: list[Document], context: Any
    ) -> Callable[..., Document]:
        from aws_lambda_powertools.utilities.idempotency import (  # noqa: PLC0415
            IdempotencyConfig,
            idempotent_function,
        )

        def replay(response: Document, idempotent_data: object) -> Document:  # noqa: ARG001 - Powertools' names
            replayed.append(response)
            return response

        config = IdempotencyConfig(
            event_key_jmespath="[tenant, route, key]",
            payload_validation_jmespath="body",
            raise_on_no_idempotency_key=True,
            expires_after_seconds=KEPT_SECONDS,
            hash_function="sha256",
            lambda_context=_Remaining(context),  # type: ignore[arg-type]
            response_hook=replay,
        )
        guarded: Callable[..., Document] = idempotent_function(
            once,
            data_keyword_argument="request",
            persistence_store=self._store,
            config=config,
            key_prefix=_PREFIX,
        )
        return guarded


def _refuse_unusable(key: str) -> None:
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        raise ProblemError("malformed_header", f"Idempotency-Key is 1 to {MAX_KEY_LENGTH} printable ASCII characters.")


def _added(document: Document, body: Document) -> Document:
    changed = {name: value for name, value in document.items() if _differs(name, value, body)}
    return {"order": list(document), "added": changed}


def _differs(name: str, value: Any, body: Mapping[str, Any]) -> bool:
    return name not in body or written(body[name]) != written(value)


def _restored(kept: Document, body: Document) -> Document:
    added = kept["added"]
    return {name: added[name] if name in added else body[name] for name in kept["order"]}


def _translated(guarded: Callable[[], Document]) -> Document:
    from aws_lambda_powertools.utilities.idempotency import exceptions  # noqa: PLC0415

    try:
        return guarded()
    except (
        exceptions.IdempotencyAlreadyInProgressError,
        exceptions.IdempotencyInconsistentStateError,
    ) as error:
        raise ProblemError(
            "request_in_progress",
            "A request with this Idempotency-Key is under way: ask again.",
            headers={"Retry-After": "1"},
        ) from error
    except exceptions.IdempotencyValidationError as error:
        raise ProblemError(
            "idempotency_key_reused", "This Idempotency-Key came with another body: use a new key."
        ) from error
    except exceptions.IdempotencyPersistenceLayerError as error:
        if isinstance(error.__cause__, DynashardError):
            raise error.__cause__ from error
        raise


class _Remaining:
    """How long this request can still take: an unfinished one blocks its key no longer than that."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the request."""
        ask = getattr(self._context, "get_remaining_time_in_millis", None)
        return _FALLBACK_MILLISECONDS if ask is None else int(ask())


class _TransportClient:
    """As much of a boto3 client as the store uses, over the layer's transport: one way to DynamoDB, one meter."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_item(self, **request: Any) -> Wire:
        return self._transport.call("GetItem", request)

    def update_item(self, **request: Any) -> Wire:
        return self._transport.call("UpdateItem", request)

    def delete_item(self, **request: Any) -> Wire:
        return self._transport.call("DeleteItem", request)

    def put_item(self, **request: Any) -> Wire:
        from botocore.exceptions import ClientError  # noqa: PLC0415

        try:
            return self._transport.call("PutItem", request)
        except ConditionFailedError as error:
            answer: Any = {"Error": {"Code": error.aws_code, "Message": str(error)}}
            if error.item is not None:
                answer["Item"] = error.item
            raise ClientError(answer, "PutItem") from error
