"""Checks of batches and transactions: sizes, codes, tokens, conflicts, and what readers see of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from uuid import uuid4

from dynashard.errors import CancellationReason
from dynashard_checks.verify_aws.check import Check, Outcome, compare, differs, dollars_of, holds, unclear
from dynashard_checks.verify_aws.checks.items import REFUSED, key
from dynashard_checks.verify_aws.context import ACCEPTED, Answer, Context, answer_of

CANCELED: Final = "TransactionCanceledException"
MISMATCH: Final = "IdempotentParameterMismatchException"
_CONFLICTS: Final = frozenset({"TransactionConflictException", "TransactionInProgressException"})
_MOVES: Final = 100
_READERS: Final = 4
_WRITERS: Final = 16
_COLLISIONS: Final = 320
_ABSENT: Final = {"ConditionExpression": "attribute_not_exists(PK)"}


def batch_sizes(context: Context) -> Outcome:
    """Send the largest batches and transactions, and those with one member more."""
    table, dynamodb = context.scratch.table("batches"), context.client("dynamodb")

    def keys(count: int) -> list[dict[str, Any]]:
        return [key(str(number)) for number in range(count)]

    requests: dict[str, tuple[int, Callable[[int], Answer]]] = {
        "BatchGetItem": (
            100,
            lambda count: answer_of(dynamodb.batch_get_item, RequestItems={table: {"Keys": keys(count)}}),
        ),
        "BatchWriteItem": (
            25,
            lambda count: answer_of(
                dynamodb.batch_write_item,
                RequestItems={table: [{"PutRequest": {"Item": each}} for each in keys(count)]},
            ),
        ),
        "TransactGetItems": (
            100,
            lambda count: answer_of(
                dynamodb.transact_get_items,
                TransactItems=[{"Get": {"TableName": table, "Key": each}} for each in keys(count)],
            ),
        ),
        "TransactWriteItems": (
            100,
            lambda count: answer_of(
                dynamodb.transact_write_items,
                TransactItems=[{"Put": {"TableName": table, "Item": each}} for each in keys(count)],
            ),
        ),
    }
    seen, expected = {}, {}
    for name, (most, send) in requests.items():
        for count, code in ((most, ACCEPTED), (most + 1, REFUSED)):
            seen[f"{name} of {count}"], expected[f"{name} of {count}"] = send(count).result, code
    return compare(expected, seen)


def cancellation_codes(context: Context) -> Outcome:
    """Let the second of three conditions fail, and compare the reasons with the actions."""
    table, dynamodb = context.scratch.table("codes"), context.client("dynamodb")
    dynamodb.put_item(TableName=table, Item=key("there") | {"V": {"S": "stored"}})
    put = {"TableName": table, **_ABSENT, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    actions = [{"Put": {**put, "Item": key(each)}} for each in ("first", "there", "last")]
    answer = answer_of(dynamodb.transact_write_items, TransactItems=actions)
    reasons = answer.document.get("CancellationReasons", [])
    return compare(
        {
            "code": CANCELED,
            "reasons": [CancellationReason.NONE, CancellationReason.CONDITION, CancellationReason.NONE],
            "item": "stored",
        },
        {
            "code": answer.code,
            "reasons": [reason.get("Code") for reason in reasons],
            "item": next((each["Item"]["V"]["S"] for each in reasons if "Item" in each), None),
        },
    )


def tokens(context: Context) -> Outcome:
    """Send transactions again with their tokens: after a success, with other content, and after a refusal."""
    table, dynamodb = context.scratch.table("tokens"), context.client("dynamodb")

    def send(token: str, value: str, partition: str, **condition: Any) -> str:
        put = {"TableName": table, "Item": key(partition) | {"V": {"S": value}}, **condition}
        return answer_of(dynamodb.transact_write_items, TransactItems=[{"Put": put}], ClientRequestToken=token).result

    done, refused, settled = (str(uuid4()) for _ in range(3))
    seen = {
        "first": send(done, "1", "a", **_ABSENT),
        "again, though its condition fails now": send(done, "1", "a", **_ABSENT),
    }
    seen["other content"] = send(done, "2", "a")
    seen["refused"] = send(refused, "3", "a", **_ABSENT)
    dynamodb.delete_item(TableName=table, Key=key("a"))
    seen["again, though its condition holds now"] = send(refused, "3", "a", **_ABSENT)
    # A harmless transaction uses up the token of one that may still arrive.
    seen["settling"] = send(settled, "-", "other")
    seen["the settled one, which arrives later"] = send(settled, "4", "b")
    return compare(
        dict(zip(seen, (ACCEPTED, ACCEPTED, MISMATCH, CANCELED, ACCEPTED, ACCEPTED, MISMATCH), strict=True)),
        seen,
    )


def moved_items(context: Context) -> Outcome:
    """Move items by transactions, while transactional reads look at both of their places."""
    table, dynamodb = context.scratch.table("moves"), context.client("dynamodb")
    for number in range(_MOVES):
        dynamodb.put_item(TableName=table, Item=key("old", str(number)))

    def move(number: int) -> None:
        marker = {
            "TableName": table,
            "Key": key("old", str(number)),
            "UpdateExpression": "SET MovedTo = :n",
            "ExpressionAttributeValues": {":n": {"N": "2"}},
        }
        copy = {"TableName": table, "Item": key("new", str(number)), **_ABSENT}
        answer_of(dynamodb.transact_write_items, TransactItems=[{"Update": marker}, {"Put": copy}])

    def look(number: int) -> str:
        gets = [{"Get": {"TableName": table, "Key": key(place, str(number))}} for place in ("old", "new")]
        answer = answer_of(dynamodb.transact_get_items, TransactItems=gets)
        if answer.code:
            codes = {reason.get("Code") for reason in answer.document.get("CancellationReasons", [])}
            return "conflict" if CancellationReason.CONFLICT in codes else answer.code
        return state_of(*(each.get("Item") for each in answer.document["Responses"]))

    with ThreadPoolExecutor(_READERS + 1, thread_name_prefix="verify-aws") as pool:
        looks = []
        for number in range(_MOVES):
            moving = pool.submit(move, number)
            looks += list(pool.map(look, [number] * _READERS))
            moving.result()
            looks.append(look(number))
    return judge_moves(Counter(looks))


def state_of(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    """Return what a transactional read of both places of an item has seen."""
    marked = old is not None and "MovedTo" in old
    if old is not None and not marked and new is None:
        return "before"
    if marked and new is not None:
        return "after"
    return f"half: {'marked' if marked else 'unmarked' if old else 'nothing'} at the old place, " + (
        "an item at the new one" if new else "nothing at the new one"
    )


def judge_moves(looks: Counter[str]) -> Outcome:
    """Judge what transactional reads have seen of items that were moved meanwhile."""
    counts = ", ".join(f"{count} {state}" for state, count in sorted(looks.items()))
    wrong = looks.keys() - {"before", "after", "conflict"}
    if wrong:
        return differs(counts)
    if not looks["after"]:
        return unclear(f"no read saw a moved item: {counts}")
    return holds(counts)


def conflicts(context: Context) -> Outcome:
    """Write one item by many transactions and single writes at once, and look at the codes of the refused ones."""
    table, dynamodb = context.scratch.table("conflicts"), context.client("dynamodb", retries=False)

    def collide(number: int) -> tuple[str, Sequence[str]]:
        item = key("one") | {"V": {"N": str(number)}}
        if number % 4 == 0:
            return "write", [answer_of(dynamodb.put_item, TableName=table, Item=item).code]
        actions = [{"Put": {"TableName": table, "Item": each}} for each in (item, key("two"))]
        answer = answer_of(dynamodb.transact_write_items, TransactItems=actions)
        reasons = answer.document.get("CancellationReasons", [])
        return "transaction", [answer.code, *(reason.get("Code") for reason in reasons)]

    with ThreadPoolExecutor(_WRITERS, thread_name_prefix="verify-aws") as pool:
        return judge_conflicts(pool.map(collide, range(_COLLISIONS)))


def judge_conflicts(answers: Iterable[tuple[str, Sequence[str]]]) -> Outcome:
    """Judge the codes of writes and transactions that met at one item; each transaction has its reasons as well."""
    counts: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for kind, (code, *reasons) in answers:
        if not code:
            continue
        known = code in _CONFLICTS or (code == CANCELED and CancellationReason.CONFLICT in reasons)
        (counts if known else unknown)[f"{kind}: {' '.join([code, *reasons])}"] += 1
    if unknown:
        return differs(f"other refusals: {dict(unknown)}")
    if not counts:
        return unclear("no two requests met")
    return holds(str(dict(counts)))


CHECKS: Final = (
    Check(
        "batch-sizes",
        "BatchGetItem takes 100 keys, BatchWriteItem 25 writes, a transaction 100 actions; one more is refused",
        batch_sizes,
        dollars=dollars_of(write_units=300, read_units=600),
        local=True,
    ),
    Check(
        "cancellation-codes",
        "a cancelled transaction has a code for each action in their order, and the stored item if asked for",
        cancellation_codes,
        local=True,
    ),
    Check(
        "transaction-tokens",
        "a transaction that was executed is not executed again under its token, other content is refused, and a "
        "refused transaction does not use its token up",
        tokens,
        local=True,
    ),
    Check(
        "transactional-reads",
        "TransactGetItems never sees a moved item half: it sees the state before, after, or is refused by a conflict",
        moved_items,
        dollars=dollars_of(write_units=_MOVES * 8, read_units=_MOVES * (_READERS + 1) * 4),
        local=True,
    ),
    Check(
        "transaction-conflicts",
        "requests that meet at an item are refused as TransactionConflict, or with TransactionConflictException",
        conflicts,
        dollars=dollars_of(write_units=_COLLISIONS * 4),
    ),
)
