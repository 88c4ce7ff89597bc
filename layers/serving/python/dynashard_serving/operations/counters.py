"""Counters for callers: the models of their requests, and changes that a repeated request makes once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from dynashard.entity import definition
from dynashard.errors import (
    FieldError,
    IdempotencyKeyReusedError,
    OutcomeUnknownError,
    TransactionRefusedError,
    ValidationFailedError,
    WriteContendedError,
)
from dynashard.service import Dynashard
from dynashard.transactions import Create
from dynashard_patterns.counters import Counter, CounterStore
from dynashard_serving.access import Caller
from dynashard_serving.counter_receipts import Receipt
from dynashard_serving.declare import ServedCounter
from dynashard_serving.documents import TENANT, Document, validated
from dynashard_serving.idempotency import KEPT_SECONDS, usable
from dynashard_serving.operations.accepting import refuse_unaddressable
from dynashard_serving.operations.permits import admitted
from dynashard_serving.operations.served import OperationError

Verb = Literal["add", "take"]
DONE: Final[Mapping[Verb, str]] = {"add": "added", "take": "taken"}
"""What the amount of a change is called in its answer."""
_RACES: Final = 3


class Change(BaseModel):
    """A change of a counter."""

    model_config = ConfigDict(extra="forbid")

    amount: Annotated[int, Field(ge=1, lt=10**38, description="By how much. The sum has at most 38 digits.")] = 1


class ValueWanted(BaseModel):
    """The query of a counter's value."""

    approximate: bool = Field(
        default=False,
        description="Read it at a quarter of the cost; it may be some seconds old, and of no single moment.",
    )


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change is answered with, and whether an earlier request with the idempotency key made it."""

    document: Document
    replayed: bool = False


class Counts:
    """Counters of one kind, for callers of a tenant.

    Attributes:
        fields: the fields that name a counter of a tenant, in order.
    """

    def __init__(self, backend: Dynashard, served: ServedCounter, clock: Callable[[], float]) -> None:
        self._served = served
        self._entity = definition(served.counter)
        self._counters: CounterStore[Counter] = CounterStore.on(backend, served.counter)
        self._receipts = backend.collection(Receipt)
        self._clock = clock
        self.fields = counter_fields(served.counter)
        self._key = key_model(served.counter)

    def value(self, caller: Caller, given: Mapping[str, Any], *, approximate: bool = False) -> Document:
        """Return a counter with its value; raises and costs as `CounterStore.value`."""
        shown, key = self._keys("get", caller, given)
        return {**shown, "value": self._counters.value(key, approximate=approximate)}

    def change(
        self,
        verb: Verb,
        caller: Caller,
        given: Mapping[str, Any],
        body: Callable[[], Document],
        idempotency_key: str | None = None,
    ) -> Changed:
        """Add to a counter or take from it; with an idempotency key, once for all requests that have it.

        `body` returns the request's body, which is read only if the caller has the right.

        Raises:
            NotPermittedError: the caller may not.
            ExhaustedError: the counter's floor or ceiling does not allow it; such a request leaves no receipt.
            IdempotencyKeyReusedError: the key came with another request.
            OutcomeUnknownError: it may have been done; with a key, the same request can be sent again.
            ValidationFailedError: the key or the amount is not valid.

        Cost: as `CounterStore.add`; with a key, 2 write units more, and for a repeat 1 read unit more.
        """
        shown, key = self._keys(verb, caller, given)
        # Another reader could not ask for its value.
        refuse_unaddressable(self.fields, shown, tuple(DONE))
        amount = validated(Change, body()).amount
        change = self._counters.add if verb == "add" else self._counters.take
        done = Changed({**shown, DONE[verb]: amount})
        if idempotency_key is None:
            change(key, amount)
            return done
        if not usable(idempotency_key):
            message = "Use 1 to 255 printable ASCII characters."
            raise ValidationFailedError(FieldError("idempotency_key", message, "string_pattern_mismatch"))
        receipt = self._receipt(caller, idempotency_key, [verb, shown, amount])
        for _ in range(_RACES):
            if self._first(change, key, amount, receipt):
                return done
            if self._made(receipt):
                return Changed(done.document, replayed=True)
            # It has expired in between.
        raise WriteContendedError("The receipt of this idempotency key came and went all the time. Ask again.")

    def delete(self, caller: Caller, given: Mapping[str, Any]) -> None:
        """Remove a counter, which begins at 0 again; raises and costs as `CounterStore.delete`."""
        self._counters.delete(self._keys("delete", caller, given)[1])

    def _first(self, change: Callable[..., object], key: Document, amount: int, receipt: Receipt) -> bool:
        """Make the change together with its receipt; return False if there is one."""
        try:
            change(key, amount, Create(receipt))
        except TransactionRefusedError as refused:
            if refused.reason != "already_exists":
                raise
            return False
        except OutcomeUnknownError as unknown:
            unknown.retryable = True
            raise
        return True

    def _made(self, receipt: Receipt) -> bool:
        """Whether the same request was made before; raises if another one, or another caller's, was."""
        found = self._receipts.find({TENANT: receipt.tenant_id, "id": receipt.id}, consistent=True)
        if found is not None and (found.request != receipt.request or _of_another(found.subject, receipt.subject)):
            raise IdempotencyKeyReusedError(
                "This idempotency key came with another request: use a new key.", field="idempotency_key"
            )
        return found is not None

    def _receipt(self, caller: Caller, idempotency_key: str, request: list[Any]) -> Receipt:
        bound = self._served.access is not None and not caller.trusted
        return Receipt(
            tenant_id=caller.tenant,
            id=_digest([self._entity.name, idempotency_key]),
            request=_digest(request),
            subject=_digest(caller.subject or "") if bound else None,
            expires_at=datetime.fromtimestamp(self._clock() + KEPT_SECONDS, UTC),
        )

    def _keys(self, right: str, caller: Caller, given: Mapping[str, Any]) -> tuple[Document, Document]:
        """Return the fields that name a counter as callers see them, and its whole key, if the caller has the right."""
        if right not in self._served.operations:
            served = ", ".join(self._served.operations)
            raise OperationError(f"{self._served.path} has no {right}; there are {served}")
        permit = admitted(self._served.access, f"/{self._served.path}", [right], caller)
        key = validated(self._key, given, strict=False)
        permit.require_new(key)
        return key.model_dump(mode="json"), {TENANT: caller.tenant, **dict(key)}


def counter_fields(model: type[Counter]) -> tuple[str, ...]:
    """Return the fields that name a counter of a tenant, in order."""
    return tuple(name for name in definition(model).partition_fields if name != TENANT)


def key_model(model: type[Counter]) -> type[BaseModel]:
    """Return the model of the fields that name a counter of a tenant."""
    fields: dict[str, Any] = {
        name: (model.model_fields[name].annotation, model.model_fields[name]) for name in counter_fields(model)
    }
    made: type[BaseModel] = create_model(f"{model.__name__}Key", __config__=ConfigDict(extra="forbid"), **fields)
    return made


def _of_another(first: str | None, repeated: str | None) -> bool:
    """Return whether a receipt answers neither every caller nor the one who repeats its request."""
    return first is not None and repeated is not None and first != repeated


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
