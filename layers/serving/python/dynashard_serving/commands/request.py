"""A request of a direct invocation, read strictly: each member known, and of its kind."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from dynashard.errors import FieldError, InputError, ValidationFailedError
from dynashard_serving.access import SCOPE, SUBJECT, Caller
from dynashard_serving.documents import TENANT, Document, validated
from dynashard_serving.json_input import MalformedJsonError, check_values, plain_numbers
from dynashard_serving.limits import MAX_EVENT_DEPTH, MAX_NAMES
from dynashard_serving.operations.computed import request_of
from dynashard_serving.operations.permits import NotPermittedError
from dynashard_serving.operations.served import Served
from dynashard_serving.tenants import TenantRule

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
CALLER: Final = "caller"
"""The member that states for whom a service asks."""
SERVICE: Final = "service"
"""What a service states that asks for itself."""
_UNSAID: Final = (
    'The request does not say for whom it asks. Send "caller": {"subject": ..., "scopes": [...]} for a user, or '
    '"caller": "service" if the service asks for itself.'
)
NAMES: Final = frozenset({"operation", "entity", TENANT, CALLER})
"""What every request has, or may have."""


class StatedCaller(BaseModel):
    """The member `caller` of a request: the user for whom a service asks."""

    model_config = ConfigDict(extra="forbid")

    subject: str | None = None
    scopes: list[str] = Field(default_factory=list, max_length=1000)
    claims: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Members:
    """What a caller asks for, of whatever it is."""

    tenant: str
    caller: Caller
    members: Mapping[str, Any]

    def only(self, *names: str) -> None:
        """Refuse all other members."""
        known = ", ".join(names) or "nothing"
        unknown = [name for name in self.members if name not in names]
        if unknown:
            raise ValidationFailedError(
                *(FieldError(str(n), f"This operation takes {known} besides.", "unknown_parameter") for n in unknown)
            )

    def text(self, name: str) -> str | None:
        """A text, None if it is left out."""
        return self._of(name, str, "a text")

    def flag(self, name: str) -> bool:
        """True or false, false if it is left out."""
        return bool(self._of(name, bool, "true or false"))

    def number(self, name: str, default: int) -> int:
        """A whole number, its default if it is left out, and 0 for anything else, which the operation refuses."""
        value = self.members.get(name)
        value = default if value is None else value
        if isinstance(value, float) and value.is_integer():
            # Beyond what a double holds exactly, a parser of JSON may give the nearest one.
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def word(self, name: str, default: str) -> str:
        """A text, its default if it is left out, and an empty one for anything else, which the operation refuses."""
        value = self.members.get(name)
        value = default if value is None else value
        return value if isinstance(value, str) else ""

    def document(self, name: str, *, needed: bool = True) -> Document:
        """An object; empty if it is left out and not needed."""
        value = self._of(name, dict, "an object")
        if value is None and needed:
            raise ValidationFailedError(FieldError(name, "This operation needs an object here.", "missing"))
        return value or {}

    def patch(self) -> Document | list[Any]:
        """A JSON Merge Patch, which is an object, or a JSON Patch, a list."""
        given = self.members.get("patch")
        return given if isinstance(given, list) else self.document("patch")

    def documents(self, name: str, *, needed: bool = False) -> list[Document]:
        """A list of objects; empty if it is left out and not needed."""
        given: list[Document] | None = self._of(name, list, "a list of objects")
        if given is None and needed:
            raise ValidationFailedError(FieldError(name, "This operation needs a list of objects here.", "missing"))
        value = given or []
        wrong = [place for place, each in enumerate(value) if not isinstance(each, dict)]
        if wrong:
            raise ValidationFailedError(
                *(FieldError(f"{name}.{place}", "Use an object.", "object_type") for place in wrong)
            )
        return value

    def texts(self, name: str) -> list[str] | None:
        """A list of at most 100 texts, None if it is left out."""
        value = self._of(name, list, "a list of texts")
        if value is not None and len(value) > MAX_NAMES:
            raise ValidationFailedError(FieldError(name, f"Send at most {MAX_NAMES} texts.", "out_of_range"))
        if value is not None and not all(isinstance(each, str) for each in value):
            raise ValidationFailedError(FieldError(name, "Use a list of texts.", "list_type"))
        return value

    def question(self, model: type[M]) -> M:
        """Return all members as a model; members that are null count as left out."""
        self.only(*(field.alias or name for name, field in model.model_fields.items()))
        given = {name: value for name, value in self.members.items() if value is not None}
        # As over REST, where all of these are text: a day is a time, and "50" is a number.
        return request_of(given, lambda values: model.model_validate_json(json.dumps(values)))

    def _of(self, name: str, kind: type[T], what: str) -> T | None:
        value = self.members.get(name)
        if value is not None and not isinstance(value, kind):
            raise ValidationFailedError(FieldError(name, f"Use {what}.", f"{kind.__name__}_type"))
        return value


@dataclass(frozen=True, slots=True)
class Asked(Members):
    """What a caller asks for, of an entity."""

    served: Served
    seconds: float

    def key(self) -> Document:
        """The whole key that `key` names."""
        return self.served.key(self.document("key"), self.tenant)


def tenant_in(event: Mapping[str, Any], tenants: TenantRule) -> str:
    """Return the tenant that a request acts for, or refuse it."""
    tenant = event.get(TENANT)
    if tenant is None:
        raise ValidationFailedError(FieldError(TENANT, "Name the tenant.", "missing"))
    if not tenants.allows(tenant):
        message = f"Send a string that matches {tenants.pattern}; `true`, `false` and `null` are not tenants."
        raise ValidationFailedError(FieldError(TENANT, message, "string_pattern_mismatch"))
    return str(tenant)


def acts_for_itself(event: Mapping[str, Any]) -> bool:
    """Return whether a service asks for itself, as far as it says."""
    return event.get(CALLER) in (None, SERVICE)


def caller_in(event: Mapping[str, Any], tenant: str, *, required: bool = False) -> Caller:
    """Return for whom a service asks: whom it states, or itself, for whom no access rule applies.

    Args:
        event: the request.
        tenant: for which tenant it is.
        required: whether a service that asks for itself has to say so.

    Raises:
        NotPermittedError: it does not say for whom, and has to.
        ValidationFailedError: it states something else than `{"subject", "scopes", "claims"}` or `"service"`.
    """
    stated = event.get(CALLER)
    if stated is None and required:
        raise NotPermittedError(_UNSAID)
    if acts_for_itself(event):
        return Caller(tenant, trusted=True)
    if not isinstance(stated, dict):
        message = 'Use an object with subject, scopes and claims, or "service".'
        raise ValidationFailedError(FieldError(CALLER, message, "object_type"))
    try:
        given = validated(StatedCaller, stated)
    except ValidationFailedError as refused:
        errors = [each._replace(field=f"{CALLER}.{each.field}") for each in refused.errors]
        raise ValidationFailedError(*errors, omitted=refused.omitted) from refused
    subject = {} if given.subject is None else {SUBJECT: given.subject}
    return Caller(tenant, {**given.claims, **subject, SCOPE: given.scopes})


def mapping(event: Any) -> Mapping[str, Any]:
    """Return the event as an object within the bounds of a request, or refuse it."""
    if not isinstance(event, Mapping):
        raise InputError("a request is an object with an operation, an entity and a tenant_id")
    try:
        check_values(event, depth=MAX_EVENT_DEPTH)
        return {name: plain_numbers(value) for name, value in event.items()}
    except MalformedJsonError as error:
        raise InputError(f"the request {error}") from error
