"""Messages of the queues: how the API writes them, and how the writer, of another version perhaps, reads them.

    {"entity": "ping.v1.Ping", "operation": "create", "tenant_id": "abc", "items": [{...}, ...],
     "operation_id": null, "accepted_at": 1795262400000, "request_id": "Hk3x..."}

A message about one item has `item` instead of `items`. `put` has an `item`, `update` a `key` and a `patch` (RFC 7396),
`delete` a `key`. A write that its caller waits for carries the `operation_id` of its record, and the conditions
`if_match` and `if_none_match`. It carries its `caller` if what the caller may do depends on the stored item, which the
writer reads. A message without a caller was judged when it was accepted, or is from a service that may send to the
queue, which no access rule limits.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard.errors import FieldError, RequestTooLargeError, ValidationFailedError
from dynashard_serving.access import SCOPE, Caller
from dynashard_serving.documents import TENANT, Document, with_fixed
from dynashard_serving.json_input import MalformedJsonError, read_json
from dynashard_serving.limits import MAX_EVENT_DEPTH
from dynashard_serving.operations.conditions import UNCONDITIONAL, Conditions, Revisions
from dynashard_serving.operations.requests import Create, Delete, Put, Update, Write
from dynashard_serving.operations.served import Served
from dynashard_serving.tenants import TenantRule

OPERATIONS: Final = ("create", "put", "update", "delete")
MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""SQS's limit for a message with its attributes, and for all messages of one call."""
_LAST_MILLISECOND: Final = 253_402_300_799_999
"""The last one of the year 9999: no date is later."""
NOT_SENDABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that SQS does not take: depending on its version it refuses the message, or stores U+FFFD instead."""


class PoisonError(Exception):
    """A message that cannot succeed at any delivery; `reason` is a stable word for why."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def as_text(document: Mapping[str, Any]) -> str:
    """Return a message as it is sent: compact JSON, in which characters that SQS does not take are escaped."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    # Only strings can contain the others: control characters are escaped already.
    return NOT_SENDABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_body(document: Mapping[str, Any]) -> bytes:
    """Return `as_text` in UTF-8."""
    return as_text(document).encode()


def creates_body(
    served: Served, tenant: str, items: Sequence[Document], accepted_at: float, request_id: str = ""
) -> bytes:
    """Return the message for new items that no caller waits for, accepted at a time in epoch seconds."""
    return as_body(
        {
            "entity": served.name,
            "operation": "create",
            TENANT: tenant,
            "items": items,
            "operation_id": None,
            "accepted_at": int(accepted_at * 1000),
            "request_id": request_id,
        }
    )


def write_body(
    served: Served,
    tenant: str,
    request: Write,
    item: Document | None,
    *,
    operation_id: str,
    accepted_at: float,
    request_id: str = "",
    caller: Caller | None = None,
) -> bytes:
    """Return the message for a write with a record; `item` is the checked document of a create or a put."""
    about = {"key": with_fixed({}, request.key)} if isinstance(request, Update | Delete) else {"item": item}
    conditions = UNCONDITIONAL if isinstance(request, Create) else request.conditions
    match, none_match = conditions.if_match, conditions.if_none_match
    return as_body(
        {
            "entity": served.name,
            "operation": type(request).__name__.lower(),
            TENANT: tenant,
            **about,
            **({"patch": request.patch} if isinstance(request, Update) else {}),
            "operation_id": operation_id,
            "if_match": None if match is None else match.names(weak=False),
            # Weak tags never match a strong comparison.
            "if_none_match": None if none_match is None else none_match.names(weak=True),
            "accepted_at": int(accepted_at * 1000),
            "request_id": request_id,
            **(
                {} if caller is None else {"caller": {"claims": dict(caller.claims), "scope_claim": caller.scope_claim}}
            ),
        }
    )


@dataclass(frozen=True, slots=True)
class Message:
    """What one message asks for.

    Attributes:
        served: the entity.
        operation: one of `OPERATIONS`.
        tenant: the tenant whose verified token asked for it.
        items: the documents of what is to be written, the tenant filled in.
        key: the key's fields, for `update` and `delete`.
        patch: the merge patch of an `update`.
        operation_id: of the record of its outcome; None if no caller waits.
        conditions: what must hold of the item.
        accepted_at: when the API accepted it, in epoch milliseconds; None if the message does not say.
        request_id: the gateway's id of the request that was accepted, for the log; empty if it is not known.
        redriven: whether it was taken out of the dead-letter queue.
        document: the message as it came.
        caller: whom the stored item is judged by.
    """

    served: Served
    operation: str
    tenant: str
    items: tuple[Document, ...]
    key: Document = field(default_factory=dict)
    patch: Any = None
    operation_id: str | None = None
    conditions: Conditions = UNCONDITIONAL
    accepted_at: int | None = None
    request_id: str = ""
    redriven: bool = False
    document: Mapping[str, Any] = field(default_factory=dict)
    caller: Caller | None = None

    @classmethod
    def parse(cls, body: str, entities: Mapping[str, Served], tenants: TenantRule) -> "Message":
        """Read a message, or raise `PoisonError` because it cannot succeed."""
        document = _object(body)
        tenant, operation = document.get(TENANT), document.get("operation")
        if not isinstance(tenant, str) or not tenants.allows(tenant):
            raise PoisonError("malformed_message", f"the message names no tenant that matches {tenants.pattern}")
        if operation not in OPERATIONS:
            raise PoisonError("unknown_operation", f"there is no operation {operation!r}: {', '.join(OPERATIONS)}")
        served = _entity(document.get("entity"), entities)
        by_key = operation in ("update", "delete")
        accepted = document.get("accepted_at")
        return cls(
            served=served,
            operation=operation,
            tenant=tenant,
            items=() if by_key else tuple({**each, TENANT: tenant} for each in _items(document)),
            key={**_members(document, "key"), TENANT: tenant} if by_key else {},
            patch=document.get("patch"),
            operation_id=_optional_text(document, "operation_id"),
            conditions=Conditions(_revisions(document, "if_match"), _revisions(document, "if_none_match")),
            accepted_at=accepted if type(accepted) is int and 0 <= accepted <= _LAST_MILLISECOND else None,
            request_id=_text_or_nothing(document.get("request_id")),
            redriven=document.get("redriven") is True,
            document=document,
            caller=_caller(document, tenant),
        )

    def request(self) -> Write:
        """Return the write that the message asks for, or refuse its key or patch."""
        match self.operation:
            case "create":
                return Create(tenant=self.tenant, item=self.items[0])
            case "put":
                return Put(tenant=self.tenant, item=self.items[0], conditions=self.conditions)
            case "update":
                if not isinstance(self.patch, dict):
                    raise ValidationFailedError(FieldError("patch", "A patch is an object.", "dict_type"))
                return Update(key=self._key(), patch=self.patch, conditions=self.conditions)
        return Delete(key=self._key(), conditions=self.conditions)

    def _key(self) -> Document:
        return self.served.key(self.key, self.tenant)


def _object(body: str) -> dict[str, Any]:
    try:
        document = read_json(body.encode(errors="surrogatepass"), depth=MAX_EVENT_DEPTH)
    except MalformedJsonError as error:
        raise PoisonError("malformed_message", f"the message {error}") from error
    except RequestTooLargeError as error:
        raise PoisonError(error.code, str(error)) from error
    if not isinstance(document, dict):
        raise PoisonError("malformed_message", "the message is not a JSON object")
    return document


def _entity(name: Any, entities: Mapping[str, Served]) -> Served:
    found = entities.get(name) if isinstance(name, str) else None
    if found is None or found.name != name:
        known = ", ".join(dict.fromkeys(one.name for one in entities.values()))
        raise PoisonError("unknown_entity", f"no entity is called {name!r}; there are {known}")
    return found


def _items(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    items = document.get("items", [document.get("item")])
    if not isinstance(items, list) or not items or not all(isinstance(each, dict) for each in items):
        raise PoisonError("malformed_message", "item is an object, or items a list of objects")
    if len(items) > 1 and document.get("operation_id") is not None:
        raise PoisonError("malformed_message", "an operation with a record is about one item")
    return items


def _members(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    if not isinstance(value, dict):
        raise PoisonError("malformed_message", f"{name} is an object")
    return value


def _optional_text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise PoisonError("malformed_message", f"{name} is text or null")
    return value


def _caller(document: Mapping[str, Any], tenant: str) -> Caller:
    stated = document.get("caller")
    if stated is None:
        return Caller(tenant, trusted=True)
    if not isinstance(stated, dict) or not isinstance(stated.get("claims"), dict):
        raise PoisonError("malformed_message", "caller is an object with claims")
    return Caller(tenant, stated["claims"], str(stated.get("scope_claim", SCOPE)))


def _text_or_nothing(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _revisions(document: Mapping[str, Any], name: str) -> Revisions | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise PoisonError("malformed_message", f"{name} is a list of revisions")
    return Revisions.named(value)
