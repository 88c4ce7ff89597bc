"""Judge whether a caller may do what a request asks for, and to which items. All operations come by here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from msgspec import Struct
from pydantic import BaseModel

from dynashard.errors import DynashardError, NotFoundError, UndecodableItemError
from dynashard_serving.access import Access, Caller, Requirement, scopes_of
from dynashard_serving.documents import REVISION, Document

T = TypeVar("T", bound=BaseModel | None)
MISSING: Final = "No live item has this key."
"""The answer about an item that does not exist, or that its caller may not read."""


class NotPermittedError(DynashardError):
    """The rules of what is served do not allow this caller to do this."""

    code = "forbidden"
    status = 403


class InsufficientScopeError(NotPermittedError):
    """The token lacks a scope; `scopes` names those of which one is enough."""

    code = "insufficient_scope"
    in_details: ClassVar[tuple[str, ...]] = ("scopes",)

    def __init__(self, message: str, scopes: Sequence[str]) -> None:
        super().__init__(message)
        self.scopes = list(scopes)


class KeyAndRevision(dict[str, Any]):
    """What a writer is answered who may not read the item: its key and its revision."""


class Permit(Struct, frozen=True):
    """What a caller may do with one right.

    Attributes:
        rules: those of the entity; None if none limits this caller.
        name: the entity's name.
        right: what the request asks for.
        caller: who asks.
        owner: what the caller must be called in the owner's field; None if the owner rule does not limit them.
    """

    rules: Access | None = None
    name: str = ""
    right: str = ""
    caller: Caller | None = None
    owner: str | None = None

    @property
    def narrow(self) -> bool:
        """Whether it depends on the item what the caller may do."""
        return self.rules is not None and (self.owner is not None or self.rules.policy is not None)

    @property
    def judges_each(self) -> bool:
        """Whether a function has to see each item."""
        return self.rules is not None and self.rules.policy is not None

    def allows(self, item: BaseModel) -> bool:
        """Return whether the right holds for an item."""
        rules = self.rules
        if rules is None:
            return True
        if self.owner is not None and getattr(item, rules.owner_field or "", None) != self.owner:
            return False
        return rules.policy is None or self._policy_allows(item)

    def require_whole(self) -> None:
        """Refuse a request that is about no single item, if the policy does not allow it.

        Raises:
            NotPermittedError: the policy was asked without an item.
        """
        if self.judges_each and not self._policy_allows(None):
            raise NotPermittedError(f"The policy of {self.name} does not allow {self.right} to this caller.")

    def require_new(self, item: BaseModel) -> None:
        """Refuse an item that the caller may not store.

        Raises:
            NotPermittedError: it says that of whose items the caller may write.
        """
        if self.narrow and not self.allows(item):
            raise self._refusal()

    def require(self, item: BaseModel) -> None:
        """Refuse a stored item that the right does not hold for.

        Raises:
            NotFoundError: the caller may not read it either, so the answer is that of an item that does not exist.
            NotPermittedError: the caller may read it.
        """
        if not self.narrow or self.allows(item):
            return
        if self.right != "get" and self.reads(item):
            raise self._refusal()
        raise NotFoundError(MISSING)

    def found(self, read: Callable[[], T]) -> T:
        """Return the item that is read, unless the right does not hold for it. Raises as `require`, and as `read`.

        An item that cannot be decoded cannot be judged, so it does not exist for a caller whose rights depend on it.
        """
        if not self.narrow:
            return read()
        try:
            item = read()
        except UndecodableItemError as error:
            if error.retryable:
                # Another release can read it, and judge.
                raise
            raise NotFoundError(MISSING) from error
        except NotFoundError as error:
            # In the words of `require`: others would tell which items exist.
            raise NotFoundError(MISSING) from error
        if item is not None:
            self.require(item)
        return item

    def replaced(self, read: Callable[[], T]) -> T:
        """Return the stored item that a put would replace, None if there is none. Raises as `require_new`, and `read`.

        A caller whose rights depend on the item may not replace one that cannot be decoded, and so not be judged.
        """
        try:
            item = read()
        except UndecodableItemError as error:
            if not self.narrow or error.retryable:
                raise
            raise self._refusal() from error
        if item is not None:
            self.require_new(item)
        return item

    def reads(self, item: BaseModel | None = None) -> bool:
        """Return whether the caller may read an item; without one, whether they may read any."""
        if self.rules is None:
            return True
        reading = self._reading
        return reading is not None and (item is None or reading.allows(item))

    def shown(self, document: Document, item: BaseModel, key_fields: Sequence[str]) -> Document:
        """Return the document that answers a write: only key and revision if the caller may not read the item."""
        if self.reads(item):
            return document
        return KeyAndRevision({name: document[name] for name in (*key_fields, REVISION) if name in document})

    @property
    def _reading(self) -> "Permit | None":
        """The caller's permit to read items; None without one."""
        try:
            return admitted(self.rules, self.name, ["get"], self.caller)
        except NotPermittedError:
            return None

    def _policy_allows(self, item: BaseModel | None) -> bool:
        rules = self.rules
        if rules is None or rules.policy is None or self.caller is None:
            return False
        try:
            return rules.policy(self.caller, self.right, item) is True
        except Exception as error:  # noqa: BLE001 - whatever a domain's function raises refuses
            _log_failure(self.name, error)
            return False

    def _refusal(self) -> NotPermittedError:
        rules = self.rules
        if rules is not None and self.owner is not None:
            field = rules.owner_field
            return NotPermittedError(f"{self.right} of {self.name} is for items whose {field} is {self.owner} only.")
        return NotPermittedError(f"The policy of {self.name} does not allow {self.right} to this caller.")


FREE: Final = Permit()
"""The permit of a caller whom no rule limits."""


def admitted(
    rules: Access | None, name: str, rights: Sequence[str], caller: Caller | None, *, whole: bool = False
) -> Permit:
    """Return what a caller may do with rights of an entity, or of something else that is served.

    Args:
        rules: those that were declared; None admits every caller of the tenant.
        name: its name, for errors.
        rights: those that the request needs; the first one names the permit.
        caller: who asks; None is refused wherever there are rules.
        whole: whether the request is about no single item, so that the policy decides about it as a whole first.

    Raises:
        InsufficientScopeError: it names the scope.
        NotPermittedError: a claim is missing, or nobody has the right.
    """
    if rules is None or (caller is not None and caller.trusted):
        return FREE
    if caller is None:
        raise NotPermittedError(f"{name} has access rules, and the request does not say who sends it.")
    if not rights:
        raise NotPermittedError(f"{name} has access rules, and this operation names no right that it needs.")
    required, limited = rules.requirements, False
    for right in rights:
        if right not in required or not caller.meets(required[right]):
            raise _refusal(required.get(right), f"{right} of {name}")
        limited = limited or right in rules.limited
    owner = None
    if limited and not (rules.any_owner is not None and caller.meets(rules.any_owner)):
        owner = rules.identity_of(caller)
        if owner is None:
            raise NotPermittedError(f"{name} is for owners, and the token has no claim for {rules.identity}.")
    permit = Permit(rules, name, rights[0], caller, owner)
    if whole:
        permit.require_whole()
    return permit


def _refusal(requirement: Requirement | None, what: str) -> NotPermittedError:
    if requirement is None:
        return NotPermittedError(f"No rule allows {what} to any caller.")
    if scopes := scopes_of(requirement):
        return InsufficientScopeError(f"{what} needs the scope {' or '.join(scopes)}.", scopes)
    return NotPermittedError(f"{what} needs a claim that the token does not have.")


def owners_of(given: Mapping[str, Any] | Sequence[Mapping[str, Any]], field: str) -> set[Any]:
    """Return the owners that logical partitions name in their field."""
    return {each.get(field) for each in ([given] if isinstance(given, Mapping) else given)}


def _log_failure(name: str, error: Exception) -> None:
    import logging  # noqa: PLC0415 - rare

    logging.getLogger("dynashard.access").error("the policy of %s failed: it refuses", name, exc_info=error)
