"""A row of the table of requests: a request in the form of direct invocation, and its outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.engine.serving.operations_data import ADA, Items, Value

Codes = Mapping[str, str]
Refusal = tuple[str | None, Codes]


@dataclass(frozen=True)
class Row:
    """A request and its outcome.

    Attributes:
        entity: by its outside name.
        operation: of direct invocation.
        name: what it is about.
        members: of the request. The revision `current` is that of the stored item.
        code: of the refusal; None if the request is done.
        fields: the codes of the fields at fault.
        result: what the result holds, among other things.
        items: the ids of the items that a listing brings, in order if it has one.
        stored: the name of what is stored already and only read; otherwise the request has a tenant of its own.
        given: items that are stored before.
        before: requests that go the same way before.
        ways: the refusal of an entry point that has a form of its own, as docs/invoking.md and docs/firehose.md say.
    """

    entity: str
    operation: str
    name: str
    members: Mapping[str, Any]
    code: str | None = None
    fields: Codes = field(default_factory=dict)
    result: Mapping[str, Any] | Value = field(default_factory=dict)
    items: Sequence[str] | None = None
    stored: str = ""
    given: Items = ()
    before: Sequence[tuple[str, Mapping[str, Any]]] = ()
    ways: Mapping[str, Refusal] = field(default_factory=dict)

    def expected(self, way: str) -> Refusal:
        """Return the code and the fields at fault that an entry point answers."""
        return self.ways.get(way, (self.code, self.fields))

    def check(self, result: Any, stored: Any) -> None:
        """Compare a result, and the item that is stored then, with the expected ones."""
        if self.items is not None:
            ids = [
                each.get("id") or each.get("slug") or each.get("participant") or each["type"]
                for each in result["items"]
            ]
            ordered = self.members.get("order") == "ordered"
            assert ids == list(self.items) if ordered else sorted(ids) == sorted(self.items)
        if not isinstance(self.result, Mapping):
            assert result == self.result
            return
        shown = result["item"] if self.operation == "put" else result
        for name, value in self.result.items():
            assert (shown if shown is not None and name in shown else result)[name] == value
            if stored is not None and name in stored:
                assert stored[name] == value


def rows(entity: str, operation: str, *cases: Mapping[str, Any]) -> list[Row]:
    """Makes rows for one operation."""
    return [Row(entity, operation, **case) for case in cases]


def done(name: str, members: Mapping[str, Any], result: Any = None, **more: Any) -> Mapping[str, Any]:
    """Return a request that succeeds."""
    return {"name": name, "members": members, "result": {} if result is None else result, **more}


def bad(
    name: str,
    members: Mapping[str, Any],
    codes: Codes | None = None,
    /,
    given: Items = (),
    ways: Any = None,
    **fields: str,
) -> Mapping[str, Any]:
    """Return a request that is refused for its fields, with the code of each."""
    return {
        "name": name,
        "members": members,
        "code": "validation_failed",
        "fields": {**(codes or {}), **fields},
        "given": given,
        "ways": ways or {},
    }


def no(name: str, code: str, members: Mapping[str, Any], fields: Codes | None = None, **more: Any) -> Mapping[str, Any]:
    """Return a request that is refused for another reason."""
    return {"name": name, "members": members, "code": code, "fields": fields or {}, **more}


HTTP: Final[Mapping[str, Refusal]] = {way: ("malformed_header", {}) for way in ("ask", "leave")}
NO_ADDRESS: Final[Mapping[str, Refusal]] = {way: ("not_found", {}) for way in ("ask", "leave")}
HERE: Final[Items] = (("users", ADA),)
GONE: Final[Items] = (("users", {**ADA, "expires_at": "2026-11-21T11:59:59Z"}),)
KEY: Final = {"id": "ada"}
