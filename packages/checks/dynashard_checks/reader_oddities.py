"""Odd things in the answer of a Query or a BatchGetItem: some that DynamoDB could send, and some that it never does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal

from dynashard.schema import BORN, EXPIRES_AT, MOVED_FROM, MOVED_TO, PK, PREV, REV, SK, TYPE
from dynashard_checks.reader_entities import TEXTS, Subject, Wire

NOW: Final = 1_800_000_000
"""The time of all reads, in epoch seconds."""
TABLE: Final = "items"
BEYOND: Final = "a number beyond a double"
"""The kind of answers whose number may be accepted, if nobody reads it."""
MARKER: Final = "a relocation marker"


@dataclass(slots=True)
class Draft:
    """An answer while it is drawn.

    Some names and texts stand for JSON that Python does not write. Names lose a `@` at their beginning, so that two
    members can have one name, and a number between two `#` stands for one of the texts in `RAW`.
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
RAW: Final = (
    b"1e999", b"-1e400", b"9" * 400, b"1e-999", b"-0", b"0.0", b"123456789012345678901234567890", b"01", b"+1", b".5",
    b"1.", b"NaN", b"Infinity", b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\xff"', b'"\xed\xa0\x80"',
    b'"\xc3\xa9"', b'"\x01"', b'"\\x"', b'"\\u12"', b'"\\u0000"', b'"\\/"', b"nul", b"tru", b"'x'", b"[1,]", b'{"a"}',
    b'{"a":1,}', b"[}", b"/**/1", b"", b"1 2", b"[" * 100 + b"]" * 100, b"[" * 1500 + b"]" * 1500,
    b'{"a":' * 1200 + b"1" + b"}" * 1200,
)  # fmt: skip
"""Texts in place of a JSON value."""
NUMBERS_BEYOND: Final = 3
"""So many of them, from the first on, are numbers beyond a double."""


def _missing(draft: Draft) -> None:
    draft.item().pop(draft.field(), None)


def _null(draft: Draft) -> None:
    draft.item()[draft.field()] = {"NULL": True}


def _of_another_type(draft: Draft) -> None:
    draft.item()[draft.field()] = draft.random.choice(_ATTRIBUTES)


def _number(draft: Draft, texts: Sequence[str] = _NUMBERS) -> None:
    text = draft.random.choice(texts)
    number = {"N": text}
    _replace(draft, "N", draft.random.choice([number, number, number, {"L": [number]}, {"NS": [text, "1"]}]))


def _no_number(draft: Draft) -> None:
    _number(draft, _NO_NUMBERS)


def _text(draft: Draft) -> None:
    _replace(draft, "S", {"S": draft.random.choice(_TEXTS)})


def _replace(draft: Draft, tag: str, attribute: Wire) -> None:
    """Replace an attribute of this type, or any."""
    item = draft.item()
    alike = [name for name in draft.fields() if isinstance(item.get(name), dict) and tag in item[name]]
    item[draft.random.choice(alike) if alike and draft.likely(0.8) else draft.field()] = attribute


def _time(draft: Draft) -> None:
    item = draft.item()
    times = [name for name in draft.fields() if str(item.get(name, "")).startswith("{'S': '2")]
    item[draft.random.choice(times or draft.fields())] = {"S": draft.random.choice(_TIMES)}


def _of_no_field(draft: Draft) -> None:
    deep: Wire = {"S": "x"}
    for _ in range(30):
        deep = {"M": {"more": deep}}
    name = draft.random.choice(["removed", "é", "field0", "pk", "S", "Items", "GSI1PK", "GSI2SK", MOVED_FROM])
    draft.item()[name] = draft.random.choice([*_ATTRIBUTES, deep])


def _marker(draft: Draft) -> None:
    item = draft.item()
    if draft.likely(0.5):
        for name in [name for name in item if name not in (PK, SK)]:
            del item[name]
    item[MOVED_TO] = {"N": "4"}


def _expiring(draft: Draft) -> None:
    draft.item()[EXPIRES_AT] = {"N": draft.random.choice(_EXPIRIES)}


def _of_another_entity(draft: Draft) -> None:
    draft.item()[TYPE] = {"S": draft.random.choice(["user.v1.User", "team.v1.Team", "other.v1.Other", "", "é"])}


def _adopted(draft: Draft) -> None:
    item = draft.item()
    for name in draft.random.choice([[TYPE], [REV], [TYPE, REV]]):
        item.pop(name, None)
    if draft.likely(0.1):
        item[REV] = {"S": ""}


def _changed(draft: Draft) -> None:
    item = draft.item()
    item |= draft.random.choice([{PREV: {"S": "q o"}}, {BORN: {"S": "b"}}, {PREV: {"S": ""}, BORN: {"S": "b"}}])


def _last_key(draft: Draft) -> None:
    """The key that DynamoDB stopped at is not that of the answer's last item, or lies beyond the bounds."""
    key = {PK: {"S": "p"}, SK: {"S": draft.random.choice(["000000", "000003", "9", "é", "\U0001f600"])}}
    draft.answer["LastEvaluatedKey"] = draft.random.choice([key, {**key, "GSI1PK": {"S": "g"}}])


def _empty(draft: Draft) -> None:
    draft.items.clear()
    if draft.likely(0.5):
        draft.answer["LastEvaluatedKey"] = {PK: {"S": "p"}, SK: {"S": "000002"}}


def _more_members(draft: Draft) -> None:
    more: dict[str, Any] = {"More": draft.random.choice([None, 1.5, "x", [], {"Items": [{}]}]), "é": 1, "items": []}
    draft.answer |= draft.random.sample(list(more.items()), 2)


def _without_counts(draft: Draft) -> None:
    for name in draft.random.choice([["Count"], ["ConsumedCapacity"], ["Count", "ScannedCount", "ConsumedCapacity"]]):
        draft.answer.pop(name, None)


def _twice(draft: Draft) -> None:
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


def _no_attribute(draft: Draft) -> None:
    draft.item()[draft.field()] = draft.random.choice(_NO_ATTRIBUTES)


def _raw(draft: Draft) -> None:
    _put_raw(draft, draft.random.randrange(NUMBERS_BEYOND, len(RAW)))


def _beyond(draft: Draft) -> None:
    _put_raw(draft, draft.random.randrange(NUMBERS_BEYOND))


def _put_raw(draft: Draft, number: int) -> None:
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


def _without_key(draft: Draft) -> None:
    item, name = draft.item(), draft.random.choice([SK, SK, PK])
    item.pop(name, None)
    if draft.likely(0.5):
        item[name] = draft.random.choice([{"N": "1"}, {"B": "AA=="}, *_NO_ATTRIBUTES])


def _system_attribute(draft: Draft) -> None:
    name = draft.random.choice([TYPE, REV, PREV, BORN, EXPIRES_AT, MOVED_TO])
    draft.item()[name] = draft.random.choice([*_ATTRIBUTES, *_NO_ATTRIBUTES])


def _no_item(draft: Draft) -> None:
    if draft.items:
        draft.items[draft.random.randrange(len(draft.items))] = draft.random.choice([None, 7, [], {}])


def _no_last_key(draft: Draft) -> None:
    key = {PK: {"S": "p"}}
    sort: Any = draft.random.choice([{}, {"N": "1"}, {"S": None}, {"S": 7}, None, "x", 7, []])
    draft.answer["LastEvaluatedKey"] = draft.random.choice([None, {}, [], "x", 0, key, {**key, SK: sort}])


def _no_counts(draft: Draft) -> None:
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


_Change = Callable[[Draft], None]
POSSIBLE: Final[Mapping[str, _Change]] = {
    "an attribute is missing": _missing,
    "an attribute is NULL": _null,
    "an attribute of another type": _of_another_type,
    "an odd number": _number,
    "an odd text": _text,
    "an odd time": _time,
    "an attribute of no field": _of_no_field,
    MARKER: _marker,
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
IMPOSSIBLE: Final[Mapping[str, _Change]] = {
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
