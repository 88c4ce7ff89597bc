"""Who may do what: the rules of what is served, as a domain declares them, and the caller whom they are judged by.

    @serve(path="users", access=Access(read="users:read", write="users:write", owner="{manager_id}"))
    class User(Entity, ...): ...

`operations.permits` judges them, the same for REST, direct invocation and queues.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, field

from dynashard.errors import DeclarationError

SUBJECT: Final = "sub"
"""The claim that identifies the caller."""
SCOPE: Final = "scope"
"""The claim that lists the caller's scopes, unless the settings name another one."""
READ_RIGHTS: Final = ("list", "get")
WRITE_RIGHTS: Final = ("create", "put", "update", "delete")
CHANGE_RIGHTS: Final = ("add", "take")
"""What changes a counter, and requires what writes do."""
_SCOPE_TOKEN: Final = re.compile(r"[!#-\[\]-~]+")
"""A scope as RFC 6749 writes it."""
_FIELD: Final = re.compile(r"\{(\w+)\}")
_IDENTITY: Final = re.compile(r"([^{}]*)\{([^{}]+)\}([^{}]*)")


class Anyone(Enum):
    """The requirement that every caller of the tenant meets."""

    ANYONE = "anyone"


ANYONE: Final = Anyone.ANYONE


class Claim(Struct, frozen=True):
    """The requirement that a claim of the token has a value, or lists it: `Claim("cognito:groups", "admins")`."""

    name: str
    value: str


Single = str | Claim
Requirement = Single | Anyone | tuple[Single, ...]
"""A scope, a claim, or several of them of which one is enough."""


class Caller(Struct, frozen=True, dict=True):
    """Who sends a request.

    Attributes:
        tenant: the tenant that the caller acts for.
        claims: those of the verified token, or those that an invoking service states. API Gateway passes each on as
            text.
        scope_claim: the claim that lists the scopes.
        trusted: a service that acts for itself: IAM or the policy of a queue decides about it, and no rule applies.
    """

    tenant: str
    claims: Mapping[str, Any] = {}
    scope_claim: str = SCOPE
    trusted: bool = False

    @property
    def subject(self) -> str | None:
        """Who the caller is, by the claim `sub`; None if the token does not say."""
        found = self.claims.get(SUBJECT)
        return found if isinstance(found, str) and found else None

    @cached_property
    def scopes(self) -> frozenset[str]:
        """The scopes of the token."""
        return frozenset(self._scope_text.split())

    @cached_property
    def _scope_text(self) -> str:
        """The scopes with a blank before and after each: a search in it costs less than a set of them."""
        found = self.claims.get(self.scope_claim)
        return f" {found.strip('[]') if isinstance(found, str) else ' '.join(_listed(found))} "

    def meets(self, requirement: Requirement) -> bool:
        """Return whether the caller meets a requirement."""
        if requirement.__class__ is str:
            return f" {requirement} " in self._scope_text
        return requirement is ANYONE or any(map(self._has, _alternatives(requirement)))

    def _has(self, single: Single) -> bool:
        if isinstance(single, str):
            return f" {single} " in self._scope_text
        found = self.claims.get(single.name)
        return single.value == found or single.value in _listed(found)


def _listed(claim: Any) -> Sequence[str]:
    """Return the members of a claim that is a list. API Gateway passes it on as `[a b]`."""
    if isinstance(claim, str):
        return claim[1:-1].split() if claim.startswith("[") and claim.endswith("]") else ()
    return [each for each in claim if isinstance(each, str)] if isinstance(claim, list | tuple) else ()


Policy = Callable[[Caller, str, Any], bool]
"""Takes the caller, the right, and the item, or None where no item is known yet; anything but True refuses."""


class Access(Struct, frozen=True, kw_only=True, dict=True):
    """Who may do what. Whatever no rule allows is refused.

    Attributes:
        read: what `list` and `get` require: a scope, a `Claim`, a tuple of which one is enough, or `ANYONE`. Counts
            need what lists need, batches what each of their parts needs.
        write: what `create`, `put`, `update` and `delete` require.
        operations: what single ones of these six require instead, such as `{"delete": "users:admin"}`.
        owner: the field that names an item's owner, such as `{manager_id}`. Only its owner may touch an item.
        identity: what a caller is called in that field, made of one claim: `{sub}`, or `User.{sub}`.
        owned: the operations that the owner rule limits: by default all, `("write",)` if everybody may read.
        index: the index whose partition is the owner's items. A listing that selects nothing reads it, not the table.
        any_owner: what callers need whom the owner rule does not limit.
        policy: decides what the other rules cannot express. It must be pure: it is called for the stored item, for the
            one that would replace it, and for each item of a page.
        policy_scopes: the scopes that the policy looks for, so that they are known.
    """

    read: Requirement | None = None
    write: Requirement | None = None
    operations: Mapping[str, Requirement] = field(default_factory=dict)
    owner: str | None = None
    identity: str = f"{{{SUBJECT}}}"
    owned: tuple[str, ...] = ("read", "write")
    index: str | None = None
    any_owner: Requirement | None = None
    policy: Policy | None = None
    policy_scopes: tuple[str, ...] = ()

    def requirement(self, right: str) -> Requirement | None:
        """Return what a right requires; None if nobody has it."""
        if right in self.operations:
            return self.operations[right]
        if right in READ_RIGHTS:
            return self.read
        return self.write if right in (*WRITE_RIGHTS, *CHANGE_RIGHTS) else None

    def identity_of(self, caller: Caller) -> str | None:
        """Return what a caller is called in the owner's field; None if the token does not have the claim."""
        before, name, after = self._identity
        claim = caller.claims.get(name)
        return f"{before}{claim}{after}" if isinstance(claim, str) and claim else None

    @cached_property
    def _identity(self) -> Sequence[str]:
        found = _IDENTITY.fullmatch(self.identity)
        return ("", "", "") if found is None else found.groups()

    @cached_property
    def limited(self) -> frozenset[str]:
        """The rights that only an item's owner has."""
        return frozenset(right for right in (*READ_RIGHTS, *WRITE_RIGHTS, *CHANGE_RIGHTS) if self.limits(right))

    @cached_property
    def requirements(self) -> Mapping[str, Requirement]:
        """What each right requires that anybody has."""
        every = {right: self.requirement(right) for right in (*READ_RIGHTS, *WRITE_RIGHTS, *CHANGE_RIGHTS)}
        return {right: found for right, found in every.items() if found is not None}

    @cached_property
    def owner_field(self) -> str | None:
        """The name of the field that names an item's owner."""
        return None if self.owner is None else self.owner.strip("{}")

    def limits(self, right: str) -> bool:
        """Return whether only an item's owner has a right."""
        kind = "read" if right in READ_RIGHTS else "write"
        return self.owner is not None and (right in self.owned or kind in self.owned)

    @property
    def scopes(self) -> Sequence[str]:
        """Every scope that the rules name."""
        every = (self.read, self.write, *self.operations.values(), self.any_owner, self.policy_scopes)
        return list(dict.fromkeys(each for one in every for each in scopes_of(one)))


def scopes_of(requirement: Requirement | None) -> Sequence[str]:
    """Return the scopes that a requirement names; one of them is enough."""
    return [each for each in _alternatives(requirement) if isinstance(each, str)]


def _alternatives(requirement: Requirement | None) -> Sequence[Single]:
    if requirement is None or isinstance(requirement, Anyone):
        return ()
    return requirement if isinstance(requirement, tuple) else (requirement,)


def check_access(access: object, name: str, rights: Collection[str], fields: Collection[str] = ()) -> None:
    """Refuse rules that are declared wrongly.

    Args:
        access: the rules; None for none.
        name: the name of what they are about, for the error.
        rights: the operations that it is served with.
        fields: the fields that can name an owner; none for what has no items.

    Raises:
        DeclarationError: with the name, and what to write.
    """
    if access is None:
        return
    for problem in _problems(access, rights, fields):
        raise DeclarationError(name, f"has wrong access rules: {problem}")


def _problems(access: object, rights: Collection[str], fields: Collection[str]) -> Iterator[str]:
    if not isinstance(access, Access):
        yield f"access is {access!r}; write Access(read=..., write=...)"
        return
    for part in ("read", "write", "any_owner"):
        yield from _wrong(part, getattr(access, part))
    for right, requirement in access.operations.items():
        if right not in rights:
            yield f"operations names {right!r}; write some of {', '.join(rights)}"
        yield from _wrong(f"operations[{right!r}]", requirement)
    if not any(access.requirement(right) for right in rights):
        yield 'no operation is allowed to anybody; write read="...", write="...", or one of them as ANYONE'
    if access.policy is not None and not callable(access.policy):
        yield f"policy is {access.policy!r}; write a function of the caller, the operation and the item"
    yield from _wrong_owner(access, rights, fields)


def _wrong(part: str, requirement: Any) -> Iterator[str]:
    if requirement is None or isinstance(requirement, Anyone):
        return
    alternatives = requirement if isinstance(requirement, tuple) else (requirement,)
    if not alternatives:
        yield f"{part} is an empty tuple; name a scope, or write ANYONE"
    for each in alternatives:
        if isinstance(each, str) and not _SCOPE_TOKEN.fullmatch(each):
            yield f"{part} names the scope {each!r}; write one without blanks and quotes, such as users:read"
        if not isinstance(each, str | Claim):
            yield f"{part} is {each!r}; write a scope, a Claim, a tuple of them, or ANYONE"


def _wrong_owner(access: Access, rights: Collection[str], fields: Collection[str]) -> Iterator[str]:
    if access.owner is None:
        if access.any_owner is not None or access.index is not None:
            yield "any_owner and index are about the owner rule; write owner= too"
        return
    found = _FIELD.fullmatch(access.owner) if isinstance(access.owner, str) else None
    if found is None:
        yield f"owner is {access.owner!r}; write one field in braces, such as {{manager_id}}"
    elif found[1] not in fields:
        known = ", ".join(fields) or "none here; write a policy"
        yield f"owner names {found[1]!r}, which is not a field with text; there are {known}"
    if not isinstance(access.identity, str) or not _IDENTITY.fullmatch(access.identity):
        yield f"identity is {access.identity!r}; write one claim in braces, such as {{sub}} or User.{{sub}}"
    if not isinstance(access.owned, tuple):
        yield f'owned is {access.owned!r}; write a tuple, such as ("write",)'
    elif unknown := [each for each in access.owned if each not in ("read", "write", *rights)]:
        yield f"owned names {unknown[0]!r}; write some of read, write, {', '.join(rights)}"
