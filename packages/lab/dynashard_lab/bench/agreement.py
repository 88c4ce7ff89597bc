"""Compare what each client returns and sends with what botocore does: only ratios of the same work mean something.

python -m dynashard_lab.bench.agreement     # prints what differs; fails if anything does
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import orjson

from dynashard_lab.bench.canned import MOST, Asked, CannedAnswers, Reply, canned_server
from dynashard_lab.bench.clients.interface import CLIENTS, FLOOR, RAW, Client, load
from dynashard_lab.bench.contenders import installed
from dynashard_lab.bench.measure import how_many
from dynashard_lab.bench.stored import FIELDS, INDEX, PAGE, TABLE, user_item

OPERATIONS: Final = (
    "get", "attached", "put", "update", "batch_write", "batch_get", "page", "three_fields", "index", "fan_out", "scan",
)  # fmt: skip
PER_SHARD: Final = PAGE + 1
"""Items of a shard, so that a page of 100 has a key to continue from."""
_OWN: Final = frozenset({
    "PK", "SK", "Type", "Ver", "Rev", "Prev", "Born", "ExpiresAt", "MovedTo", "tenant_id", f"{INDEX}PK", f"{INDEX}SK",
})  # fmt: skip
"""Attributes that the layer reads of every item for itself: those of the system, and the field of its key."""
_ASSIGNED: Final = re.compile(r"[#\w]+ *= *")
_WHOLE: Final = frozenset(name for name in user_item(0, 0) if name.islower()) - _OWN
"""The fields of a user: all attributes but the keys of the table and of indexes, and what the layer reads anyway."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a client did in one operation.

    Attributes:
        items: how many items it returned or counted.
        ends: three fields of the items with the lowest and the highest id; empty if it returned no items.
        sent: each request, by what decides about its cost.
    """

    items: int
    ends: tuple[tuple[str, ...], ...]
    sent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The canned answers, and the requests about items that they answered."""

    answers: CannedAnswers = field(default_factory=lambda: CannedAnswers(PER_SHARD))
    requests: list[Asked] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Reply:
        if TABLE.encode() in asked.body:
            self.requests.append(asked)
        return self.answers(asked)


def work_of(name: str, operations: Sequence[str] = OPERATIONS) -> dict[str, Work]:
    """Return what a client of the list does, by operation, once it is connected and has prepared what it sends."""
    recorded, done = _Recorded(), {}
    with canned_server(recorded) as url:
        client = load(name, url)
        for operation in operations:
            if not hasattr(client, operation) or (name == FLOOR and operation in {"fan_out", "scan"}):
                continue  # The floor does not look at the answers, so it cannot count their items.
            _answer(client, operation)
            recorded.requests.clear()
            answer = _answer(client, operation)
            done[operation] = Work(how_many(answer), _ends(answer), tuple(sorted(map(_cost, recorded.requests))))
        client.close()
    return done


def differences(names: Sequence[str], operations: Sequence[str] = OPERATIONS) -> Iterator[str]:
    """Yield a line for each operation in which a client does other work than botocore."""
    expected = work_of(RAW, operations)
    for name in names:
        for operation, work in work_of(name, operations).items():
            wanted = expected[operation]
            if name == FLOOR:
                wanted = Work(wanted.items, (), wanted.sent)
            if work != wanted:
                yield f"{name}, {operation}: {work}; {wanted} was expected"


def _answer(client: Client, operation: str) -> Any:
    answer = getattr(client, operation)()
    return answer if client.loop is None else client.loop.run_until_complete(answer)


def _ends(answer: Any) -> tuple[tuple[str, ...], ...]:
    if answer is None or isinstance(answer, int):
        return ()
    # A batch may return its items in any order.
    rows = sorted(map(_fields, answer if isinstance(answer, list | tuple) else [answer]))
    return rows[0], rows[-1]


def _fields(item: Any) -> tuple[str, ...]:
    """Return three fields of an item, whatever it is: typed as on the wire, a mapping of Python values, or a model."""
    values = [item[name] if isinstance(item, Mapping) else getattr(item, name) for name in FIELDS]
    identity, email, logins = (next(iter(each.values())) if isinstance(each, Mapping) else each for each in values)
    return identity, email, str(int(logins))


def _cost(asked: Asked) -> str:
    """Describe a request by what decides about its cost."""
    body = orjson.loads(asked.body)
    if asked.operation == "Query":
        return f"Query of at most {body.get('Limit', MOST)} items, {_projection(body)}"
    if asked.operation in ("PutItem", "UpdateItem"):
        condition = "on a condition" if "attribute_not_exists" in body.get("ConditionExpression", "") else "always"
        return f"stores {condition}: {' '.join(sorted(_stored(body)))}"
    if asked.operation.startswith("Batch"):
        requests = body["RequestItems"][TABLE]
        return f"{asked.operation} of {len(requests if isinstance(requests, list) else requests['Keys'])}"
    return f"{asked.operation}, {_projection(body)}"


def _stored(body: Mapping[str, Any]) -> Iterable[str]:
    """Return the attributes that a write stores: the layer replaces an item by an update, which costs the same."""
    if "Item" in body:
        return cast("Mapping[str, Any]", body["Item"])
    names = body.get("ExpressionAttributeNames", {})
    assigned = body["UpdateExpression"].partition(" REMOVE ")[0].removeprefix("SET ")
    # The revision before is the layer's own; commas inside a function belong to it.
    aliases = [each.partition("=")[0].strip() for each in _ASSIGNED.findall(assigned)]
    return [*body["Key"], *(name for alias in aliases if (name := names.get(alias, alias)) != "Prev")]


def _projection(body: Mapping[str, Any]) -> str:
    """Return which fields a read asks for, apart from what the layer reads for itself and from the keys of indexes."""
    if "ProjectionExpression" not in body:
        return "all fields"
    names = body.get("ExpressionAttributeNames", {})
    fields = {names.get(name, name) for name in body["ProjectionExpression"].replace(" ", "").split(",")} - _OWN
    return {_WHOLE: "all fields", frozenset(FIELDS): "three fields"}.get(frozenset(fields), f"fields {sorted(fields)}")


def main() -> int:
    """Print what differs, and return the exit status."""
    found = list(differences(installed(list(CLIENTS))))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
