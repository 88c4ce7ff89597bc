"""Conditional requests (RFC 9110, section 13): `If-Match` and `If-None-Match` against revisions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from dynashard.entity import Handling
from dynashard.errors import RevisionMismatchError
from dynashard.hosting.limits import MAX_TAGS
from functions.api.problems import ProblemError

HANDLING: Final = "handling"
"""The preference (RFC 7240) that names a level of care."""
_OTHERS: Final = ("strict", "lenient")
_LIST: Final = re.compile(r'\s*(?:(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*)?(?:,|$)')


def etag(revision: str | None) -> dict[str, str]:
    """The ETag header of a revision: a strong one."""
    return {} if revision is None else {"ETag": f'"{revision}"'}


def preferred_handling(headers: Mapping[str, str]) -> str | None:
    """The level of care that a write's caller prefers: `Prefer: handling=guarded`. None without one.

    `strict` and `lenient`, which RFC 7240 knows besides, concern other things and are ignored.

    Raises:
        ProblemError: 400 if there is no such level.
    """
    for each in headers.get("prefer", "").split(","):
        name, given, value = each.partition(";")[0].strip().partition("=")
        value = value.strip().strip('"').lower()
        if name.strip().lower() != HANDLING or not given or value in _OTHERS:
            continue
        if value not in tuple(Handling):
            raise ProblemError("malformed_header", f"Prefer: handling is one of {', '.join(Handling)}.")
        return value
    return None


@dataclass(frozen=True, slots=True)
class Tags:
    """The value of one such header: `*`, or a list of entity tags."""

    anything: bool
    strong: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, name: str, value: str) -> Self:
        """Read a header's value.

        Raises:
            ProblemError: 400 if it is neither `*` nor a list of quoted tags.
        """
        if value.strip() == "*":
            return cls(anything=True)
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
        return cls(anything=False, strong=frozenset(strong), weak=frozenset(weak))


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What a request demands of the item's present state."""

    if_match: Tags | None = None
    if_none_match: Tags | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """Read both headers.

        Raises:
            ProblemError: 400 if one is malformed.
        """
        match, none_match = headers.get("if-match"), headers.get("if-none-match")
        return cls(
            None if match is None else Tags.parse("If-Match", match),
            None if none_match is None else Tags.parse("If-None-Match", none_match),
        )

    @property
    def none(self) -> bool:
        """Whether the request demands nothing."""
        return self.if_match is None and self.if_none_match is None

    @property
    def only_new(self) -> bool:
        """Whether the request is `If-None-Match: *` and nothing else."""
        return self.if_match is None and self.if_none_match is not None and self.if_none_match.anything

    @property
    def single_revision(self) -> str | None:
        """The one revision the item must have, if that is all the request demands."""
        tags = self.if_match
        if tags is None or self.if_none_match is not None or tags.weak or len(tags.strong) != 1:
            return None
        return next(iter(tags.strong))

    def match(self, revision: str | None) -> bool:
        """Whether `If-Match` holds for the present revision, None for no item. Weak tags never match."""
        if self.if_match is None:
            return True
        return revision is not None and (self.if_match.anything or revision in self.if_match.strong)

    def none_match(self, revision: str | None) -> bool:
        """Whether `If-None-Match` holds for the present revision, None for no item. Weak tags count."""
        tags = self.if_none_match
        if tags is None or revision is None:
            return True
        return not (tags.anything or revision in tags.strong or revision in tags.weak)

    def demand(self, revision: str | None) -> None:
        """Refuse a write whose demands do not hold.

        Raises:
            RevisionMismatchError: `If-Match` does not hold.
            ProblemError: 412, `If-None-Match` does not hold.
        """
        if not self.match(revision):
            raise RevisionMismatchError(
                "The item is not at the revision that If-Match names: read it again.", current=revision
            )
        if not self.none_match(revision):
            raise ProblemError("precondition_failed", "The item exists in the state that If-None-Match excludes.")
