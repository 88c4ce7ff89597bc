"""Bodies of answers with items: most are as DynamoDB sends them, with one or two odd things in them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import orjson

from dynashard.keys import KeyTemplate
from dynashard.routing import logical_partition_of
from dynashard.schema import PK, SK
from dynashard_checks.answers import damaged
from dynashard_checks.reader_entities import Subject, Wire
from dynashard_checks.reader_oddities import BEYOND, IMPOSSIBLE, MARKER, NUMBERS_BEYOND, POSSIBLE, RAW, TABLE, Draft

USUAL: Final = "as it is stored"


@dataclass(frozen=True, slots=True)
class Body:
    """The body of an answer.

    Attributes:
        plain: the body with 0 in place of a number beyond a double.
        kinds: the odd things in it.
        possible: whether DynamoDB could send it, about items that the layer has stored or adopted.
    """

    sent: bytes
    plain: bytes
    kinds: Sequence[str]
    possible: bool


_INSERTED: Final = (
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\x00", b"\n", b"\\", b'"', b"{", b"}", b"[", b"]",
    b",", b":", b"1", b"-", b"e5", b"null", b"true", b" ", b'"S":"other",', b'"N":"1",', b'"Items":[],', b"}]}",
    b"\xef\xbb\xbf",
)  # fmt: skip
_STRUCTURES: Final = (
    b"", b"null", b"[]", b"{}", b"7", b'"x"', b'{"Items":null}', b'{"Items":{}}', b'{"Items":7}', b'{"items":[]}',
    b'[{"Items":[]}]', b'{"Items":[[]]}', b'{"Responses":null}', b'{"Responses":[]}', b'{"Responses":{"items":{}}}',
    b'{"Responses":{"items":null}}', b'{"Responses":{"items":[null]}}', b'{"Responses":{}}',
)  # fmt: skip
_AT_ITS_KEY: Final = 0.9
"""The share of items whose fields are made those of their key, if these are texts."""
_RAW_MARK: Final = re.compile(rb'"#(\d+)#"')
_LETTER: Final = re.compile(rb'(?<=[A-Za-z"])[A-Z](?=[A-Za-z"])')


_OF_BYTES: Final = ("cut", "damaged", "inserted bytes", "escaped letters", "blanks", "more around it", "something else")
_HARMLESS: Final = frozenset({"escaped letters", "blanks"})
_KINDS: Final = (*POSSIBLE, *POSSIBLE, *IMPOSSIBLE, *_OF_BYTES)


def query_body(random: Random, subject: Subject, request: Mapping[str, Any], first: int) -> Body:
    """Return the body of an answer to a Query; the sort key of its first item begins with the number `first`."""
    forward = request.get("ScanIndexForward", True)
    partition = request["ExpressionAttributeValues"][":partition"]["S"]
    count = min(request["Limit"], random.choice([1, 1, 2, 2, 3]))
    numbers = range(first, first + count) if forward else range(999_999 - first, 999_999 - first - count, -1)
    items = [_item(random, subject, partition, _sort(random, number)) for number in numbers]
    answer: dict[str, Any] = {"Count": count, "ScannedCount": count, "ConsumedCapacity": _capacity(random)}
    if random.getrandbits(1):
        answer["LastEvaluatedKey"] = {PK: items[-1][PK], SK: items[-1][SK]}
    return _drawn(Draft(random, subject, items, answer, "Items"))


def batch_body(random: Random, subject: Subject, request: Mapping[str, Any]) -> Body:
    """Return the body of an answer to a BatchGetItem: not all items are found, nor all keys processed."""
    keys = [*request["RequestItems"][TABLE]["Keys"]]
    random.shuffle(keys)
    unread = [keys.pop() for _ in range(random.choice([0, 0, 0, 1])) if keys]
    items = [_item(random, subject, key[PK]["S"], key[SK]["S"]) for key in keys[: random.choice([1, 2, 3, 3, 3])]]
    answer: dict[str, Any] = {"ConsumedCapacity": [_capacity(random)]}
    if unread:
        answer["UnprocessedKeys"] = {TABLE: {"Keys": unread}}
    else:
        answer |= random.choice([{}, {"UnprocessedKeys": {}}, {"UnprocessedKeys": {TABLE: {"Keys": []}}}])
    return _drawn(Draft(random, subject, items, answer, "Responses"))


def _item(random: Random, subject: Subject, partition: str, sort: str) -> Wire:
    """A stored item, at times with an index entry, and in any order, because DynamoDB keeps none."""
    item = {PK: {"S": partition}, **random.choice(subject.items), SK: {"S": sort}}
    if random.random() < _AT_ITS_KEY:
        item |= _texts_in(subject.entity.sort, sort) | _texts_in(
            subject.entity.partition, _fields_of(subject, partition)
        )
    if not random.getrandbits(2):
        item = {"GSI1PK": {"S": "g"}, **item, "GSI1SK": {"S": sort}}
    return item if random.getrandbits(2) else dict(random.sample(list(item.items()), len(item)))


def _fields_of(subject: Subject, stored: str) -> str:
    """The part of a stored partition key that is made of fields."""
    entity = subject.entity
    return logical_partition_of(entity, stored).removeprefix(f"{entity.prefix}{entity.separator}")


def _texts_in(template: KeyTemplate, text: str) -> Wire:
    """The fields of a key that are stored as the text in it."""
    parts = [re.escape(part) if isinstance(part, str) else f"(?P<{part.name}>.+)" for part in template.parts]
    found = re.fullmatch("".join(parts), text, re.DOTALL)
    return {name: {"S": value} for name, value in found.groupdict().items()} if found else {}


def _sort(random: Random, number: int) -> str:
    return f"{number:06d}" + random.choice(["", "", "", "é", '"\\', "\U0001f600", "#\x01"])


def _capacity(random: Random) -> dict[str, Any]:
    return {"TableName": TABLE, "CapacityUnits": random.choice([0.5, 1.0, 12.5, 1])}


def _drawn(draft: Draft) -> Body:
    """The body of an answer, after none, one or two odd things have happened to it."""
    random = draft.random
    kinds = list(dict.fromkeys(random.sample(_KINDS, random.choice([0, 1, 1, 2]))))
    if BEYOND in kinds:
        # Other changes could make it another number.
        kinds = [BEYOND]
    for kind in kinds:
        change = POSSIBLE.get(kind) or IMPOSSIBLE.get(kind)
        if change is not None and all(isinstance(item, dict) for item in draft.items):
            change(draft)
    answer = draft.whole()
    if not random.getrandbits(2):
        answer = dict(random.sample(list(answer.items()), len(answer)))
    plain = _written(random, answer, kinds)
    if b'"@' in plain:
        plain = plain.replace(b'"@@', b'"').replace(b'"@', b'"')
    sent = plain
    if b"#" in plain:
        sent = _RAW_MARK.sub(lambda mark: RAW[int(mark[1])], plain)
        plain = _RAW_MARK.sub(lambda mark: RAW[int(mark[1])] if int(mark[1]) >= NUMBERS_BEYOND else b"0", plain)
    for kind in kinds:
        if kind in _OF_BYTES:
            plain = sent = _with_other_bytes(random, kind, sent)
    possible = _HARMLESS.union(POSSIBLE).issuperset(kinds)
    if draft.within == "Responses" and MARKER in kinds:
        # Nothing moves, so there is nothing where a marker leads to.
        possible = False
    return Body(sent, plain, kinds or [USUAL], possible)


def _written(random: Random, answer: Mapping[str, Any], kinds: Sequence[str]) -> bytes:
    """The answer as JSON, in one of the ways to write it."""
    if "blanks" in kinds:
        return json.dumps(answer, ensure_ascii=False, indent=random.choice([None, 1, "\t"])).encode()
    if "escaped letters" in kinds:
        text = json.dumps(answer, separators=(",", ":")).encode()
        return _LETTER.sub(lambda letter: letter[0] if random.getrandbits(3) else b"\\u%04x" % ord(letter[0]), text)
    return orjson.dumps(answer)


def _with_other_bytes(random: Random, kind: str, body: bytes) -> bytes:
    at = random.randrange(len(body) + 1)
    if kind == "cut":
        return body[:at]
    if kind == "damaged" and body:
        return damaged(body, random)
    if kind == "inserted bytes":
        return body[:at] + random.choice(_INSERTED) + body[at + random.choice([0, 0, 1, 2]) :]
    if kind == "more around it":
        before = random.choice([b"", b" ", b"\n\t", b"\xef\xbb\xbf", b"\x00"])
        return before + body + random.choice([b"", b" ", b"\n", b"\x00", b"}", b"{}", b",", b"\xff"])
    return random.choice(_STRUCTURES) if kind == "something else" else body
