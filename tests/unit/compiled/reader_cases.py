"""Bodies of answers with items: most are as DynamoDB sends them, with one or two odd things in them."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import orjson

from dynashard.entity.item_keys import KeyTemplates
from dynashard.errors import InvalidKeyError
from dynashard.keys import KeyTemplate
from dynashard.schema import PK, REV, SK, index_pk, index_sk
from dynashard_checks.answers import damaged
from tests.unit.compiled.reader_entities import Subject, Wire
from tests.unit.compiled.reader_oddities import BEYOND, IMPOSSIBLE, MARKER, NUMBERS_BEYOND, POSSIBLE, RAW, TABLE, Draft

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
_WITHOUT_KEYS: Final = frozenset({MARKER, "an attribute of no field", "another LastEvaluatedKey", "an empty page"})
"""What may replace or leave out the keys of index entries, which DynamoDB does not do."""
_HARMLESS: Final = frozenset({"escaped letters", "blanks"})
_KINDS: Final = (*POSSIBLE, *POSSIBLE, *IMPOSSIBLE, *_OF_BYTES)


def query_body(random: Random, subject: Subject, request: Mapping[str, Any], first: int) -> Body:
    """Return the body of an answer to a Query; the sort key of its first item begins with the number `first`."""
    forward = request.get("ScanIndexForward", True)
    partition = request["ExpressionAttributeValues"][":partition"]["S"]
    count = min(request["Limit"], random.choice([1, 1, 2, 2, 3]))
    slot = request.get("IndexName")
    if slot is None:
        numbers = range(first, first + count) if forward else range(999_999 - first, 999_999 - first - count, -1)
        items = [_item(random, subject, partition, _sort(random, number)) for number in numbers]
    else:
        entries = _entries(subject, slot, partition)[:: 1 if forward else -1][first - 1 :]
        items = [_perhaps_stale(random, subject, slot, entry) for entry in entries[:count]]
    answer: dict[str, Any] = {"Count": count, "ScannedCount": count, "ConsumedCapacity": _capacity(random)}
    if items and random.getrandbits(1):
        keys = (PK, SK) if slot is None else (PK, SK, index_pk(slot), index_sk(slot))
        answer["LastEvaluatedKey"] = {name: items[-1][name] for name in keys}
    revised = "ProjectionExpression" not in request or REV in request["ExpressionAttributeNames"].values()
    return _drawn(Draft(random, subject, items, answer, "Items", revised, of_index=slot is not None))


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
    number = subject.sorts.index(sort) if sort in subject.sorts else random.randrange(len(subject.items))
    stored = subject.items[number]
    item = {PK: {"S": partition}, **stored, SK: {"S": sort}}
    if random.random() < _AT_ITS_KEY:
        item |= _texts_in(subject.entity.partition, _fields_of(subject.entity, partition), stored)
        item |= _texts_in(subject.entity.sort, sort, stored) or {SK: {"S": subject.sorts[number]}}
    if not random.getrandbits(2):
        item = {"GSI1PK": {"S": "g"}, **item, "GSI1SK": {"S": sort}}
    return item if random.getrandbits(2) else dict(random.sample(list(item.items()), len(item)))


def _entries(subject: Subject, slot: str, partition: str) -> list[Wire]:
    """The entries of all items that have one in this shard of an index, in its order."""
    entity = subject.entity
    index = next(index for index in entity.indexes.values() if index.slot == slot)
    shard = "" if entity.shards is None else f"{entity.separator}{entity.rule.first}"
    entries: dict[tuple[str, str, str], Wire] = {}
    for stored in subject.items:
        item = stored | _texts_in(index.partition, _fields_of(index, partition), stored)
        key = entity.key_of(entity.decode_fields(item, entity.key_fields))
        with suppress(InvalidKeyError):
            if entry := index.entry(entity.decode_fields(item, index.fields)):
                own = {PK: {"S": key.partition + shard}, SK: {"S": key.sort}}
                of_index = {index_pk(slot): {"S": partition}, index_sk(slot): {"S": entry.sort}}
                entries.setdefault((entry.sort, *key), {**own, **item, **of_index})
    return [entries[key] for key in sorted(entries)]


def _perhaps_stale(random: Random, subject: Subject, slot: str, entry: Wire) -> Wire:
    """The entry, at times with a field of its key changed by a version that does not declare the index."""
    index = next(index for index in subject.entity.indexes.values() if index.slot == slot)
    others = sorted(index.fields - {*subject.entity.key_fields})
    if not others or random.random() < _AT_ITS_KEY:
        return dict(entry)
    return {**entry, random.choice(others): {"S": "2021-02-24T19:28:41.000077Z"}}


def _fields_of(key: KeyTemplates, stored: str) -> str:
    """The part of a stored partition key that is made of fields."""
    fields = stored.removeprefix(f"{key.prefix}{key.separator}") if key.prefix else stored
    before, _, shard = fields.rpartition(key.separator)
    return before if before and shard.isdecimal() else fields


def _texts_in(template: KeyTemplate, text: str, item: Wire) -> Wire:
    """The fields of a key that are stored as the text in it, and as other texts in an item."""
    if any(not isinstance(part, str) and (part.spec or "S" not in item.get(part.name, ())) for part in template.parts):
        return {}
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
    return Body(sent, plain, kinds or [USUAL], _is_possible(draft, kinds))


def _is_possible(draft: Draft, kinds: Sequence[str]) -> bool:
    """Whether DynamoDB could send an answer to which these things have happened."""
    if draft.within == "Responses" and MARKER in kinds:
        # Nothing moves, so there is nothing where a marker leads to.
        return False
    if draft.of_index and not _WITHOUT_KEYS.isdisjoint(kinds):
        return False
    return _HARMLESS.union(POSSIBLE).issuperset(kinds)


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
