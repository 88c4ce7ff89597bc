"""Bodies of answers with items: most are as DynamoDB sends them, with one or two odd things in them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal

import orjson

from bench.answers import damaged
from bench.reader_entities import TEXTS, Subject, Wire
from dynashard.schema import BORN, EXPIRES_AT, MOVED_FROM, MOVED_TO, PK, PREV, REV, SK, TYPE

NOW: Final = 1_800_000_000
"""The time of all reads, in epoch seconds."""
TABLE: Final = "items"
USUAL: Final = "as it is stored"
BEYOND: Final = "a number beyond a double"
"""The kind of answers whose number may be accepted, if nobody reads it."""
_MARKER: Final = "a relocation marker"


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


@dataclass(slots=True)
class _Draft:
    """An answer while it is drawn.

    Some names and texts stand for JSON that Python does not write. Names lose a `@` at their beginning, so that two
    members can have one name, and a number between two `#` stands for one of the texts in `_RAW`.
    """

    random: Random
    subject: Subject
    items: list[Any]
    answer: dict[str, Any]
    within: Literal["Items", "Responses"]

    def whole(self) -> dict[str, Any]:
        """Return the answer with its items."""
        return {self.within: self.items if self.within == "Items" else {TABLE: self.items}, **self.answer}

    def item(self) -> Any:
        """Return an item to change."""
        return self.random.choice(self.items) if self.items else {}

    def fields(self) -> list[str]:
        """Return the attributes of all fields but the time of expiry."""
        return [name for name in self.subject.model.model_fields if name != self.subject.entity.expires]

    def field(self) -> str:
        """Return one of these."""
        return self.random.choice(self.fields())

    def likely(self, chance: float) -> bool:
        """Whether something happens that has this chance."""
        return self.random.random() < chance


_ATTRIBUTES: Final[Sequence[Wire]] = (
    {"S": "text"}, {"S": ""}, {"S": "7"}, {"S": "true"}, {"S": "2021-02-24T19:28:41.000001Z"}, {"N": "0"}, {"N": "-7"},
    {"N": "1.50"}, {"N": "99999999999999999999999"}, {"BOOL": True}, {"BOOL": False}, {"NULL": True}, {"B": "AAEC"},
    {"B": ""}, {"SS": ["a", "é"]}, {"NS": ["1", "2.50"]}, {"BS": ["AAEC"]}, {"L": []}, {"L": [{"S": "a"}, {"N": "1"}]},
    {"M": {}}, {"M": {"S": {"S": "x"}, "more": {"L": [{"M": {"a": {"NULL": True}}}]}}},
)  # fmt: skip
_NO_ATTRIBUTES: Final[Sequence[Any]] = (
    {}, {"S": "x", "N": "7"}, {"S": None}, {"S": ["x"]}, {"N": 7}, {"N": None}, {"BOOL": "true"}, {"BOOL": 1},
    {"Q": "x"}, {"B": "?"}, {"B": 7}, {"NS": ["x"]}, {"SS": "ab"}, {"L": {}}, {"L": [None]}, {"M": []}, {"NULL": False},
    None, "x", 7, 1.5, True, [], [{"S": "x"}],
)  # fmt: skip
_NUMBERS: Final = (
    "0", "-12", "007", "-007", "1.50", "0.000", "1E2", "1e2", "1E-7", "4.2E1", "1E+125", "9.9E125", "1E-130", "9" * 38,
    "0." + "0" * 100 + "1", "18446744073709551616", "9007199254740993", "3.0000000000000001", "5.0",
)  # fmt: skip
_NO_NUMBERS: Final = (
    "-0", "-0.0", "1E126", "1E300", "1e400", "-1E999999999", "1E-131", "1E-170", "1E-400", "9" * 39, "1" * 5000, "NaN",
    "nan", "Infinity", "-Infinity", "1_000", " 5", "5 ", "+5", ".5", "5.", "0x10", "\u0663", "", "-", "x", "1,5",
    "0" * 5000,
)  # fmt: skip
_TIMES: Final = (
    "2021-02-24T19:28:41.000000Z", "2021-02-24T19:28:41.100000Z", "2021-02-24T19:28:41Z", "2021-02-24T19:28:41+02:00",
    "2021-02-24 19:28:41.000001Z", "2021-02-24T19:28:41.000001", "2021-02-29T19:28:41.000001Z", "1613000000",
    "2021-12-31T24:00:00.000001Z", "0999-02-24T19:28:41.000001Z", "2021-02-24T19:28:41.000001z", "2021-02-24",
    "2021-02-24T19:28:60.000001Z", "2021-02-24T19:28:41.000001Z\n", "9999-12-31T23:59:59.999999-14:00", "19:28:41",
)  # fmt: skip
_TEXTS: Final = (
    *TEXTS, *_TIMES, "blue", "green", "true", "1.5", "6F9619FF8B86D011B42D00CF4FC964FF", "http://", "x" * 2000,
    "\ue000", "\U0010ffff", "a:b", "#", "user_é",
)  # fmt: skip
_EXPIRIES: Final = (
    "0", "86400.7", str(NOW - 1), str(NOW), str(NOW + 1), f"{NOW}.5", "4000000000", "1E10", "99999999999999", "-1",
)  # fmt: skip
_RAW: Final = (
    b"1e999", b"-1e400", b"9" * 400, b"1e-999", b"-0", b"0.0", b"123456789012345678901234567890", b"01", b"+1", b".5",
    b"1.", b"NaN", b"Infinity", b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\xff"', b'"\xed\xa0\x80"',
    b'"\xc3\xa9"', b'"\x01"', b'"\\x"', b'"\\u12"', b'"\\u0000"', b'"\\/"', b"nul", b"tru", b"'x'", b"[1,]", b'{"a"}',
    b'{"a":1,}', b"[}", b"/**/1", b"", b"1 2", b"[" * 100 + b"]" * 100, b"[" * 1500 + b"]" * 1500,
    b'{"a":' * 1200 + b"1" + b"}" * 1200,
)  # fmt: skip
"""Texts in place of a JSON value."""
_BEYOND: Final = 3
"""So many of them, from the first on, are numbers beyond a double."""
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
_RAW_MARK: Final = re.compile(rb'"#(\d+)#"')
_LETTER: Final = re.compile(rb'(?<=[A-Za-z"])[A-Z](?=[A-Za-z"])')


def _missing(draft: _Draft) -> None:
    draft.item().pop(draft.field(), None)


def _null(draft: _Draft) -> None:
    draft.item()[draft.field()] = {"NULL": True}


def _of_another_type(draft: _Draft) -> None:
    draft.item()[draft.field()] = draft.random.choice(_ATTRIBUTES)


def _number(draft: _Draft, texts: Sequence[str] = _NUMBERS) -> None:
    text = draft.random.choice(texts)
    number = {"N": text}
    _replace(draft, "N", draft.random.choice([number, number, number, {"L": [number]}, {"NS": [text, "1"]}]))


def _no_number(draft: _Draft) -> None:
    _number(draft, _NO_NUMBERS)


def _text(draft: _Draft) -> None:
    _replace(draft, "S", {"S": draft.random.choice(_TEXTS)})


def _replace(draft: _Draft, tag: str, attribute: Wire) -> None:
    """Replace an attribute of this type, or any."""
    item = draft.item()
    alike = [name for name in draft.fields() if isinstance(item.get(name), dict) and tag in item[name]]
    item[draft.random.choice(alike) if alike and draft.likely(0.8) else draft.field()] = attribute


def _time(draft: _Draft) -> None:
    item = draft.item()
    times = [name for name in draft.fields() if str(item.get(name, "")).startswith("{'S': '2")]
    item[draft.random.choice(times or draft.fields())] = {"S": draft.random.choice(_TIMES)}


def _of_no_field(draft: _Draft) -> None:
    deep: Wire = {"S": "x"}
    for _ in range(30):
        deep = {"M": {"more": deep}}
    name = draft.random.choice(["removed", "é", "field0", "pk", "S", "Items", "GSI1PK", "GSI2SK", MOVED_FROM])
    draft.item()[name] = draft.random.choice([*_ATTRIBUTES, deep])


def _marker(draft: _Draft) -> None:
    item = draft.item()
    if draft.likely(0.5):
        for name in [name for name in item if name not in (PK, SK)]:
            del item[name]
    item[MOVED_TO] = {"N": "4"}


def _expiring(draft: _Draft) -> None:
    draft.item()[EXPIRES_AT] = {"N": draft.random.choice(_EXPIRIES)}


def _of_another_entity(draft: _Draft) -> None:
    draft.item()[TYPE] = {"S": draft.random.choice(["user.v1.User", "team.v1.Team", "other.v1.Other", "", "é"])}


def _adopted(draft: _Draft) -> None:
    item = draft.item()
    for name in draft.random.choice([[TYPE], [REV], [TYPE, REV]]):
        item.pop(name, None)
    if draft.likely(0.1):
        item[REV] = {"S": ""}


def _changed(draft: _Draft) -> None:
    item = draft.item()
    item |= draft.random.choice([{PREV: {"S": "q o"}}, {BORN: {"S": "b"}}, {PREV: {"S": ""}, BORN: {"S": "b"}}])


def _last_key(draft: _Draft) -> None:
    """The key that DynamoDB stopped at is not that of the answer's last item, or lies beyond the bounds."""
    key = {PK: {"S": "p"}, SK: {"S": draft.random.choice(["000000", "000003", "9", "é", "\U0001f600"])}}
    draft.answer["LastEvaluatedKey"] = draft.random.choice([key, {**key, "GSI1PK": {"S": "g"}}])


def _empty(draft: _Draft) -> None:
    draft.items.clear()
    if draft.likely(0.5):
        draft.answer["LastEvaluatedKey"] = {PK: {"S": "p"}, SK: {"S": "000002"}}


def _more_members(draft: _Draft) -> None:
    more: dict[str, Any] = {"More": draft.random.choice([None, 1.5, "x", [], {"Items": [{}]}]), "é": 1, "items": []}
    draft.answer |= draft.random.sample(list(more.items()), 2)


def _without_counts(draft: _Draft) -> None:
    for name in draft.random.choice([["Count"], ["ConsumedCapacity"], ["Count", "ScannedCount", "ConsumedCapacity"]]):
        draft.answer.pop(name, None)


def _twice(draft: _Draft) -> None:
    """Two members have one name."""
    item, random = draft.item(), draft.random
    where = random.choice(["item", "attribute", "answer"])
    if where == "answer" or not item:
        draft.answer[f"@{draft.within}"] = random.choice([[], {}, draft.items, {TABLE: []}, None])
        draft.answer["@LastEvaluatedKey"] = {PK: {"S": "p"}, SK: {"S": "x"}}
        return
    name = random.choice([*item])
    if where == "attribute":
        if isinstance(item[name], dict) and item[name]:
            [tag, *_] = item[name]
            item[name] = {**item[name], f"@{tag}": random.choice(["other", "7", True, None])}
        return
    both = {f"@{name}": random.choice(_ATTRIBUTES), **item}
    item.clear()
    item.update(both if draft.likely(0.5) else {**both, f"@@{name}": random.choice(_ATTRIBUTES)})


def _no_attribute(draft: _Draft) -> None:
    draft.item()[draft.field()] = draft.random.choice(_NO_ATTRIBUTES)


def _raw(draft: _Draft) -> None:
    _put_raw(draft, draft.random.randrange(_BEYOND, len(_RAW)))


def _beyond(draft: _Draft) -> None:
    _put_raw(draft, draft.random.randrange(_BEYOND))


def _put_raw(draft: _Draft, number: int) -> None:
    """Put a raw value where nobody reads it, or where a field, the layer or a sum of capacity does."""
    raw, item, answer = f"#{number}#", draft.item(), draft.answer
    where = draft.random.choice(["unread", "unread", "answer", "field", "count", "capacity", "system"])
    if where == "unread":
        item["removed"] = draft.random.choice([raw, {"N": raw}, {"L": [{"N": raw}]}])
    elif where == "answer":
        answer["More"] = draft.random.choice([raw, [raw], {"a": raw}])
    elif where == "field":
        item[draft.field()] = draft.random.choice([raw, {"N": raw}, {"S": raw}])
    elif where == "count":
        answer["ScannedCount"] = raw
    elif where == "capacity":
        answer["ConsumedCapacity"] = {"CapacityUnits": raw} if draft.within == "Items" else [{"CapacityUnits": raw}]
    else:
        item[draft.random.choice([REV, TYPE, SK, PREV, EXPIRES_AT])] = {"S": raw}


def _without_key(draft: _Draft) -> None:
    item, name = draft.item(), draft.random.choice([SK, SK, PK])
    item.pop(name, None)
    if draft.likely(0.5):
        item[name] = draft.random.choice([{"N": "1"}, {"B": "AA=="}, *_NO_ATTRIBUTES])


def _system_attribute(draft: _Draft) -> None:
    name = draft.random.choice([TYPE, REV, PREV, BORN, EXPIRES_AT, MOVED_TO])
    draft.item()[name] = draft.random.choice([*_ATTRIBUTES, *_NO_ATTRIBUTES])


def _no_item(draft: _Draft) -> None:
    if draft.items:
        draft.items[draft.random.randrange(len(draft.items))] = draft.random.choice([None, 7, [], {}])


def _no_last_key(draft: _Draft) -> None:
    key = {PK: {"S": "p"}}
    sort: Any = draft.random.choice([{}, {"N": "1"}, {"S": None}, {"S": 7}, None, "x", 7, []])
    draft.answer["LastEvaluatedKey"] = draft.random.choice([None, {}, [], "x", 0, key, {**key, SK: sort}])


def _no_counts(draft: _Draft) -> None:
    name = draft.random.choice(["Count", "ScannedCount", "ConsumedCapacity", "ConsumedCapacity"])
    odd: list[Any] = [
        None,
        "x",
        -1,
        2**63,
        {},
        [],
        True,
        {"CapacityUnits": None},
        {"CapacityUnits": 2**63},
        [{"TableName": []}],
    ]
    draft.answer[name] = draft.random.choice(odd)


_Change = Callable[[_Draft], None]
_POSSIBLE: Final[Mapping[str, _Change]] = {
    "an attribute is missing": _missing,
    "an attribute is NULL": _null,
    "an attribute of another type": _of_another_type,
    "an odd number": _number,
    "an odd text": _text,
    "an odd time": _time,
    "an attribute of no field": _of_no_field,
    _MARKER: _marker,
    "a time of expiry": _expiring,
    "an item of another entity": _of_another_entity,
    "an adopted item": _adopted,
    "a changed item": _changed,
    "another LastEvaluatedKey": _last_key,
    "an empty page": _empty,
    "more members": _more_members,
    "counts are missing": _without_counts,
}
"""What DynamoDB could send."""
_IMPOSSIBLE: Final[Mapping[str, _Change]] = {
    "a member twice": _twice,
    "a malformed attribute": _no_attribute,
    "a number that DynamoDB does not store": _no_number,
    "a malformed value": _raw,
    BEYOND: _beyond,
    "a malformed key": _without_key,
    "a malformed system attribute": _system_attribute,
    "a malformed item": _no_item,
    "a malformed LastEvaluatedKey": _no_last_key,
    "malformed counts": _no_counts,
}
_OF_BYTES: Final = ("cut", "damaged", "inserted bytes", "escaped letters", "blanks", "more around it", "something else")
_HARMLESS: Final = frozenset({"escaped letters", "blanks"})
_KINDS: Final = (*_POSSIBLE, *_POSSIBLE, *_IMPOSSIBLE, *_OF_BYTES)


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
    return _drawn(_Draft(random, subject, items, answer, "Items"))


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
    return _drawn(_Draft(random, subject, items, answer, "Responses"))


def _item(random: Random, subject: Subject, partition: str, sort: str) -> Wire:
    """A stored item, at times with an index entry, and in any order, because DynamoDB keeps none."""
    item = {PK: {"S": partition}, **random.choice(subject.items), SK: {"S": sort}}
    if not random.getrandbits(2):
        item = {"GSI1PK": {"S": "g"}, **item, "GSI1SK": {"S": sort}}
    return item if random.getrandbits(2) else dict(random.sample(list(item.items()), len(item)))


def _sort(random: Random, number: int) -> str:
    return f"{number:06d}" + random.choice(["", "", "", "é", '"\\', "\U0001f600", "#\x01"])


def _capacity(random: Random) -> dict[str, Any]:
    return {"TableName": TABLE, "CapacityUnits": random.choice([0.5, 1.0, 12.5, 1])}


def _drawn(draft: _Draft) -> Body:
    """The body of an answer, after none, one or two odd things have happened to it."""
    random = draft.random
    kinds = list(dict.fromkeys(random.sample(_KINDS, random.choice([0, 1, 1, 2]))))
    if BEYOND in kinds:
        # Other changes could make it another number.
        kinds = [BEYOND]
    for kind in kinds:
        change = _POSSIBLE.get(kind) or _IMPOSSIBLE.get(kind)
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
        sent = _RAW_MARK.sub(lambda mark: _RAW[int(mark[1])], plain)
        plain = _RAW_MARK.sub(lambda mark: _RAW[int(mark[1])] if int(mark[1]) >= _BEYOND else b"0", plain)
    for kind in kinds:
        if kind in _OF_BYTES:
            plain = sent = _with_other_bytes(random, kind, sent)
    possible = _HARMLESS.union(_POSSIBLE).issuperset(kinds)
    if draft.within == "Responses" and _MARKER in kinds:
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
