"""What callers need, in the OpenAPI document: scopes as security requirements, other rules as sentences."""

from collections.abc import Iterable
from itertools import chain, product

from dynashard_serving.access import ANYONE, Access, Claim, Requirement, scopes_of
from dynashard_serving.api.openapi.parts import Operation
from dynashard_serving.operations.served import Served


def secured(described: Operation, rules: Access | None, right: str) -> Operation:
    """Return an operation with what its callers need by the rules."""
    if rules is None:
        return described
    requirement = rules.requirement(right)
    texts = [described["description"], _needs(requirement), *_limits(rules, right)]
    found: Operation = {**described, "description": " ".join(text for text in texts if text)}
    if scopes_of(requirement):
        found["security"] = [{"bearer": scopes} for scopes in _alternatives(requirement)]
    return found


def secured_item_read(described: Operation, rules: Access | None, right: str, of: Served) -> Operation:
    """Return a read about an item with what its callers need: also the right to read the item."""
    own = secured(described, rules, right)
    item = secured({**described, "description": ""}, of.exposed.access, "get")
    found: Operation = {**own, "description": f"{own['description']} {item['description']}".rstrip()}
    both = [each["security"] for each in (own, item) if "security" in each]
    if both:
        every = [[scope for each in picked for scope in each["bearer"]] for picked in product(*both)]
        found["security"] = [{"bearer": list(dict.fromkeys(scopes))} for scopes in every]
    return found


def secured_batch(described: Operation, rules: Access | None) -> Operation:
    """Return an operation that does several ones. A security requirement could not say that each needs its own."""
    text = "" if rules is None else " Each request needs what it needs alone, and has its refusal as its outcome."
    return {**described, "description": described["description"] + text}


def secured_family(described: Operation, members: Iterable[Served]) -> Operation:
    """Return the listing of several entities with what its callers need: the right to list each of them."""
    rules = [each.exposed.access for each in members if each.exposed.access is not None]
    required = [each.requirement("list") for each in rules]
    if not any(map(scopes_of, required)):
        return described
    picked = product(*map(_alternatives, required))
    every = [list(dict.fromkeys(chain.from_iterable(scopes))) for scopes in picked]
    text = "Needs the right to list each kind, and lists only what the caller may read."
    security = [{"bearer": scopes} for at, scopes in enumerate(every) if scopes not in every[:at]]
    return {**described, "description": f"{described['description']} {text}", "security": security}


def may_write_unread(rules: Access | None, right: str) -> bool:
    """Return whether a caller with a right to write may lack that to read what they have written."""
    if rules is None:
        return False
    reading, writing = rules.requirement("get"), rules.requirement(right)
    if reading is None or rules.policy is not None or (rules.limits("get") and not rules.limits(right)):
        return True
    return reading is not ANYONE and not _singles(writing) <= _singles(reading)


def _singles(requirement: Requirement | None) -> set[object]:
    return set(requirement if isinstance(requirement, tuple) else (requirement,))


def _alternatives(requirement: Requirement | None) -> list[list[str]]:
    """Return the scopes of which one list is enough: an empty one if a claim is, which no security requirement says."""
    found = [[scope] for scope in scopes_of(requirement)]
    return found if found and all(isinstance(each, str) for each in _singles(requirement)) else [*found, []]


def _needs(requirement: Requirement | None) -> str:
    if requirement is None:
        return "No caller may do this."
    if requirement is ANYONE:
        return ""
    alternatives = requirement if isinstance(requirement, tuple) else (requirement,)
    texts = [
        f"the claim `{each.name}` with `{each.value}`" if isinstance(each, Claim) else f"the scope `{each}`"
        for each in alternatives
        if isinstance(each, str | Claim)
    ]
    return f"Needs {' or '.join(texts)}."


def _limits(rules: Access, right: str) -> Iterable[str]:
    if rules.limits(right):
        free = " or ".join(f"`{each}`" for each in scopes_of(rules.any_owner))
        unless = f", unless the token has {free}" if free else ""
        yield f"Only for items whose `{rules.owner_field}` names the caller{unless}."
    if rules.policy is not None:
        yield "A policy of the domain decides about each item."
