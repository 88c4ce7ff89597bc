"""The headers of items: `ETag`, `If-Match` and `If-None-Match` (RFC 9110), and `Prefer` (RFC 7240)."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from dynashard.entity import WriteGuarantee
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.limits import MAX_TAGS
from dynashard_serving.operations.conditions import UNCONDITIONAL, Conditions, Revisions

HANDLING: Final = "handling"
"""The preference (RFC 7240) that names a write guarantee."""
RETURN: Final = "return"
MINIMAL: Final = "minimal"
"""The preference for an answer to a write that has no body. The other value is `representation`, the default."""
_OTHERS: Final = ("strict", "lenient")
_PREFERENCE: Final = re.compile(r'(?:"(?:[^"\\]|\\.?)*+"?|[^,"])++')
"""One of the preferences that commas separate. A comma within quotes separates none."""
_LIST: Final = re.compile(r'\s*(?:(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*)?(?:,|$)')


def etag(revision: str | None) -> dict[str, str]:
    """The ETag header of a revision: a strong one."""
    return {} if revision is None else {"ETag": f'"{revision}"'}


def preferences(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return the preferences of the header `Prefer` (RFC 7240): each name in lower case with its value, or ""."""
    sent = headers.get("prefer")
    for each in _PREFERENCE.findall(sent) if sent else ():
        name, _, value = each.partition(";")[0].partition("=")
        yield name.strip().lower(), value.strip().strip('"')


def preferred_handling(headers: Mapping[str, str]) -> str | None:
    """The write guarantee that a write's caller prefers: `Prefer: handling=guarded`. None without one.

    `strict` and `lenient`, the values of RFC 7240, concern other things and are ignored.

    Raises:
        ProblemError: 400 if there is no such level.
    """
    for name, value in preferences(headers):
        if name != HANDLING or not value or value.lower() in _OTHERS:
            continue
        if value.lower() not in tuple(WriteGuarantee):
            raise ProblemError("malformed_header", f"Prefer: handling is one of {', '.join(WriteGuarantee)}.")
        return value.lower()
    return None


def prefers_minimal(headers: Mapping[str, str]) -> bool:
    """Whether a write's caller prefers an answer without the item: `Prefer: return=minimal`. The first one counts."""
    values = (value for name, value in preferences(headers) if name == RETURN)
    return next(values, "").lower() == MINIMAL


def conditions_of(headers: Mapping[str, str]) -> Conditions:
    """Return what `If-Match` and `If-None-Match` demand. Malformed headers are refused (400)."""
    match, none_match = headers.get("if-match"), headers.get("if-none-match")
    if match is None and none_match is None:
        return UNCONDITIONAL
    return Conditions(
        None if match is None else tags_of("If-Match", match),
        None if none_match is None else tags_of("If-None-Match", none_match),
    )


def tags_of(name: str, value: str) -> Revisions:
    """Return the revisions of a header's value: `*`, or a list of entity tags. Anything else is refused (400)."""
    if value.strip() == "*":
        return Revisions(anything=True)
    strong: set[str] = set()
    weak: set[str] = set()
    position = 0
    if value.count('"') > 2 * MAX_TAGS:
        raise ProblemError("malformed_header", f"{name} has too many tags; at most {MAX_TAGS} are allowed.")
    while position < len(value):
        found = _LIST.match(value, position)
        if found is None or found.end() == position:
            raise ProblemError("malformed_header", f'{name} is * or a list of quoted tags such as "abc".')
        if found[2] is not None:
            (weak if found[1] else strong).add(found[2])
        position = found.end()
    if not strong and not weak:
        raise ProblemError("malformed_header", f"{name} names no tag.")
    return Revisions(anything=False, strong=frozenset(strong), weak=frozenset(weak))


def idempotency_key(headers: Mapping[str, str]) -> str | None:
    """Return the header `Idempotency-Key`, or None. An unusable key is refused (400)."""
    key = headers.get("idempotency-key")
    if key is None:
        return None
    from dynashard_serving.idempotency import MAX_KEY_LENGTH, usable  # noqa: PLC0415 - a GET has no such key

    if not usable(key):
        raise ProblemError("malformed_header", f"Idempotency-Key is 1 to {MAX_KEY_LENGTH} printable ASCII characters.")
    return key
