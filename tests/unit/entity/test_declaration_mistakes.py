"""Common mistakes in declarations are refused with the correction."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest
from pydantic import AwareDatetime, BaseModel, EmailStr, FutureDatetime, PastDate

from dynashard import Index, Key, Shards, Unique, created_at, new_id
from dynashard.entity import plain_types
from dynashard.errors import DeclarationError
from tests.declaring import KEY, NAME, an_index, declare, new_class, sorted_by

pytestmark = pytest.mark.unit


class Address(BaseModel):
    street: str


class Loose(BaseModel, extra="allow"):
    street: str


class Unknown:
    """A type that no field can have."""


class Rank(IntEnum):
    FIRST = 1
    TENTH = 10


def same(values: dict[str, Any]) -> dict[str, Any]:
    return values


async def awaited(values: dict[str, Any]) -> dict[str, Any]:
    return values


WRITE_KEY = 'write key=Key(partition="{tenant_id}", sort="{id}")'
INDEX = 'Index("GSI1", "by_email", partition="{tenant_id}", sort="{email}")'
WRITE_INDEX = f"write {INDEX}"
WRITE_BOTH = 'write name="user.v1.User", key=Key(partition="{tenant_id}", sort="{id}")'

MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    # Arguments of a wrong type.
    "shards without a count": (
        Shards,
        "one number, as count or as start; write Shards(16), or Shards(start=",
    ),
    "a count and a start": (lambda: Shards(16, start=16), "one number, as count or as start; write Shards(16), or"),
    "a registry as a number": (
        lambda: declare(registry=5),  # type: ignore[arg-type]
        "registry is 5: write registry=Registry()",
    ),
    "max without its name": (lambda: declare(shards=Shards(4, 64)), "parts, random: write max=64"),  # type: ignore[arg-type]
    "shards as a number": (lambda: declare(shards=8), "shards is 8: write shards=Shards(8)"),
    "shards as true": (lambda: declare(shards=True), "shards is True: write shards=Shards(16)"),
    "shards as a text": (lambda: declare(shards="16"), "shards is '16': write shards=Shards(16)"),
    "shards without a call": (lambda: declare(shards=Shards), "shards is the class Shards: write shards=Shards(16)"),
    "a count that is not a power of two": (lambda: declare(shards=Shards(12)), "write Shards(8) or Shards(16)"),
    "placement that is not a name": (
        lambda: declare(shards=Shards(4, [])),  # type: ignore[arg-type]
        "placement is []; it must be one of calculated, epochs, modulo, parts, random",
    ),
    "key as a text": (
        lambda: declare(key="{tenant}/{id}"),  # type: ignore[arg-type]
        f"key is '{{tenant}}/{{id}}': {WRITE_KEY}",
    ),
    "key as a pair": (lambda: declare(key=("{tenant}", "{id}")), WRITE_KEY),  # type: ignore[arg-type]
    "key as a dictionary": (lambda: declare(key={"partition": "{tenant}"}), WRITE_KEY),  # type: ignore[arg-type]
    "key of nothing": (
        lambda: declare(key=Key(None)),  # type: ignore[arg-type]
        "partition of the key is None: write a text",
    ),
    "key of a number": (
        lambda: declare(key=Key("{tenant}", 7)),  # type: ignore[arg-type]
        "sort of the key is 7: write a text",
    ),
    "key by DynamoDB's words": (
        lambda: Key(pk="{tenant}", sk="{id}"),  # type: ignore[call-arg]
        "pk is not an argument of Key; write Key(",
    ),
    "key without a partition": (
        lambda: Key(sort="{id}"),  # type: ignore[call-arg]
        'write Key(partition="{tenant_id}", sort="{id}")',
    ),
    "name as a number": (
        lambda: declare(name=7),  # type: ignore[arg-type]
        'name is 7: write a text, such as name="user.v1.User"',
    ),
    "name with blanks": (lambda: declare(name="my thing"), "letters, digits and ._/#-, such as user.v1.User"),
    "one index without a list": (lambda: declare(indexes=an_index()), f"write a list, indexes=[{INDEX}]"),
    "indexes as a dictionary": (lambda: declare(indexes={"by_id": an_index()}), f"write a list, indexes=[{INDEX}]"),
    "indexes that are none": (lambda: declare(indexes=None), f"indexes is None: write a list, indexes=[{INDEX}]"),
    "index as a name": (lambda: declare(indexes=["by_id"]), f"index is 'by_id': {WRITE_INDEX}"),
    "index without a partition": (
        lambda: Index("GSI1", "x", sort="{id}"),  # type: ignore[call-arg]
        f"argument: 'partition'; {WRITE_INDEX}",
    ),
    "index without a sort": (
        lambda: Index("GSI1", "x", "{id}"),  # type: ignore[call-arg]
        f"argument: 'sort'; {WRITE_INDEX}",
    ),
    "index of no partition": (
        lambda: declare(indexes=[an_index(partition=None)]),  # type: ignore[arg-type]
        f"partition of index by_id is None: write a text, as in {INDEX}",
    ),
    "index by its name first": (
        lambda: declare(indexes=[an_index("by_id", "GSI1")]),
        'it must be one of GSI1, GSI2, GSI3: write Index("GSI1", "by_email", ...)',
    ),
    "index shards as a number": (lambda: declare(indexes=[an_index(shards=4)]), "write shards=Shards(4)"),
    "slot twice": (
        lambda: declare(indexes=[an_index(), an_index(name="again")]),
        "write another of GSI1, GSI2, GSI3 for one",
    ),
    "index name twice": (lambda: declare(indexes=[an_index(), an_index("GSI2")]), "write another name for one of them"),
    "expires as true": (lambda: declare(expires=True), 'write the field\'s name, such as expires="expires_at"'),
    "expires of no field": (lambda: declare(expires="until"), "write `until: datetime | None = None`"),
    "expires of a number": (lambda: declare({"until": int}, expires="until"), "declare it as `datetime | None = None`"),
    # Class arguments.
    "shard": (lambda: declare(shard=Shards(4)), "has no class argument 'shard'; write shards="),
    "ttl": (lambda: declare(ttl="until"), "has no class argument 'ttl'; write expires="),
    "index": (lambda: declare(index=[an_index()]), "has no class argument 'index'; write indexes="),
    "prefix outside the key": (lambda: declare(prefix="team"), "has no class argument 'prefix'; write key="),
    "anything else": (
        lambda: declare(colour="red"),
        "'colour'. The class arguments are name, key, shards, indexes, expires, unique, handling, version, upgrade, ",
    ),
    "key without a name": (lambda: new_class("T", {"__module__": __name__}, key=KEY), WRITE_BOTH),
    "name without a key": (lambda: new_class("T", {"__module__": __name__}, name=NAME), WRITE_BOTH),
    "shards alone": (lambda: new_class("T", {"__module__": __name__}, shards=Shards(4)), WRITE_BOTH),
    # Fields.
    "new_id without a call": (lambda: declare({"n": (str, new_id)}), "the function new_id: write `n: str = new_id()`"),
    "stamp without a call": (lambda: declare({"n": (datetime, created_at)}), "write `n: datetime = created_at()`"),
    "new_id of a number": (lambda: declare({"n": (int, new_id())}), "filled with a text; write `n: str = new_id()`"),
    "new_id without a type": (
        lambda: new_class("T", {"__module__": __name__, "id": new_id()}, name=NAME, key=KEY),
        "write each field as `name: type`",
    ),
    "type that no field can have": (
        lambda: declare({"n": Unknown}),
        "has a field of type Unknown, which cannot be stored: write str, int, Decimal, datetime, bytes, a list, a dict",
    ),
    "field without a type": (
        lambda: new_class("T", {"x": 5}, name=NAME, key=KEY),
        "attribute was detected: `x = 5`; write each field as `name: type`",
    ),
    "name of a method": (lambda: declare({"model_dump": str}), "hides a method of its class; write another name, such"),
    "default by the name in an enum": (
        lambda: declare({"rank": (Rank, "TENTH")}),
        "the default of field rank is 'TENTH', which is not a value of Rank: write Rank.TENTH",
    ),
    "arguments in the body": (
        lambda: new_class("T", {"__annotations__": {"id": str}, "name": NAME, "key": KEY}),
        "has name and key in its body: write class T(Entity, name=..., key=...)",
    ),
    "time that must be in the future": (
        lambda: declare({"due": list[FutureDatetime]}),
        "holds a datetime that must be in the future, and could not be read once it has passed: write datetime, and",
    ),
    # Templates.
    "field with a mistake": (lambda: declare(key=sorted_by("{tenent}")), "tenant, id; did you mean tenant?"),
    "field that is computed": (
        lambda: new_class(
            "T", {"__annotations__": {"tenant": str}, "f": property(repr)}, name=NAME, key=sorted_by("{f}")
        ),
        "it is computed when it is read, and keys have what is stored: make it a field",
    ),
    "key without any field": (lambda: new_class("T", {}, name=NAME, key=KEY), "declare it, such as `tenant: str`"),
    "field after a dollar": (lambda: declare(key=sorted_by("$id")), "the same text for every item: write '{id}'"),
    "field in angles": (lambda: declare(key=sorted_by("<id>")), "the same text for every item: write '{id}'"),
    "field in doubled braces": (lambda: declare(key=sorted_by("{{id}}")), "the same text for every item: write '{id}'"),
    "field by percent": (lambda: declare(key=sorted_by("%(id)s")), "the same text for every item: write '{id}'"),
    "system attribute": (lambda: declare({"Type": str}), "name of a system attribute; write another, such as type_"),
    "revision": (lambda: declare({"revision": int}), "write another, such as revision_number"),
    "more fields than an update can set": (
        lambda: declare({f"field_{number}": str for number in range(401)}),
        "fields, and 400 is the most: move some into a nested model",
    ),
    "nested model that drops fields": (
        lambda: declare({"home": Address}),
        'holds a Address, which does not refuse unknown fields: write `class Address(BaseModel, extra="',
    ),
    "nested model deep inside": (lambda: declare({"homes": dict[str, list[Address] | None]}), 'extra="forbid")`'),
    "nested model that takes anything": (lambda: declare({"home": Loose}), 'extra="forbid")`'),
    # Keys.
    "partition without braces": (
        lambda: declare(key=Key("tenant", "{id}")),
        "is the same text for every item: write '{tenant}'",
    ),
    "sort without braces": (
        lambda: declare(key=sorted_by("id")),
        "sort 'id' is the same text for every item: write '{id}'",
    ),
    "unbalanced braces": (lambda: declare(key=sorted_by("{id")), "braces hold a field name, such as {id}"),
    "unknown field": (lambda: declare(key=sorted_by("{nobody}")), "is not a field; there are tenant, id"),
    "optional key field": (
        lambda: declare({"n": (str | None, None)}, key=sorted_by("{n}")),
        "write its type without None",
    ),
    "float in a key": (lambda: declare({"n": float}, key=sorted_by("{n}")), "such as an int of the smallest unit"),
    "decimal in a key": (lambda: declare({"n": Decimal}, key=sorted_by("{n}")), "such as an int of the smallest unit"),
    "number or text in a key": (lambda: declare({"n": int | str}, key=sorted_by("{n}")), "write one type"),
    "int id": (
        lambda: declare({"id": int}, key=sorted_by("{id}")),
        'so that 10 is listed before 9: write {id:012d}. For keys that are stored so already, write unpadded=("id",)',
    ),
    "number of no width": (lambda: declare({"n": int}, key=sorted_by("{n:d}")), "write {n:012d}"),
    "number filled with blanks": (lambda: declare({"n": int}, key=sorted_by("{n:5d}")), "write {n:012d}"),
    "number within a sort key": (lambda: declare({"n": int}, key=sorted_by("a#{n}#{id}")), "write {n:012d}"),
    "number in the sort key of an index": (
        lambda: declare({"n": int}, indexes=[an_index(sort="{n}#{id}")]),
        "by_id sort names n, an int without a fixed width, so that 10 is listed before 9: write {n:012d}",
    ),
    "numbers of an enum": (
        lambda: declare({"n": Rank}, key=sorted_by("{n}")),
        "write an int with a fixed width, {n:04d}",
    ),
    "unpadded of no field": (
        lambda: declare(key=Key("{tenant}", "{id}", unpadded=("n",))),
        "sort template '{id}' has no field n, which unpadded names",
    ),
    "unpadded as a text": (lambda: declare(key=Key("{tenant}", "{id}", unpadded="id")), 'such as ("seq",)'),
    "version that is not a number": (
        lambda: declare(version="2"),
        "version is '2'; it must be a whole number from 1 on",
    ),
    "version too large": (lambda: declare(version=1_000_001), "must be a whole number from 1 on, such as version=2"),
    "upgrade that is not a mapping": (lambda: declare(version=2, upgrade=same), "it must map versions to functions"),
    "upgrade that is not a function": (lambda: declare(version=2, upgrade={1: "same"}), "it must be a function"),
    "upgrade that is awaited": (
        lambda: declare(version=2, upgrade={1: awaited}),
        "the upgrade of version 1 is awaited, which is awaited: write it without async",
    ),
    "upgrade without a version": (lambda: declare(upgrade={1: same}), "has upgrades but no version"),
    "upgrade of a version that lacks": (
        lambda: declare(version=3, upgrade={1: same}),
        "upgrades version 1 but not version 2: add upgrade={2: ...}",
    ),
    "upgrade of the present version": (
        lambda: declare(version=2, upgrade={1: same, 2: same}),
        "upgrades version 2, and its own version is 2: write version=3",
    ),
    "unique of no field": (
        lambda: declare(unique=("mail",)),
        "unique names mail, which is not a field; there are tenant, id",
    ),
    "unique of fields together": (
        lambda: declare({"a": str, "b": str}, unique=(("a", "b"),)),
        "write Unique(('a', 'b')) for fields that are unique together",
    ),
    "unique of no name": (lambda: declare(unique=(7,)), 'write unique=("email",)'),
    "unique that is a mapping": (lambda: declare(unique={"a": 1}), 'write unique=("email",)'),
    "unique of no fields": (lambda: declare(unique=(Unique(()),)), 'write unique=("email",)'),
    "unique within no template": (lambda: declare({"a": str}, unique=(Unique("a", within=7),)), "write a template"),  # type: ignore[arg-type]
    "unique within no field": (
        lambda: declare({"a": str}, unique=(Unique("a", within="{nobody}"),)),
        "what is unique within template '{nobody}' names nobody, which is not a field",
    ),
    "unique twice": (lambda: declare({"a": str}, unique=("a", "a")), "unique a is declared twice"),
    "unique of a field twice": (
        lambda: declare({"a": str}, unique=(Unique(("a", "a")),)),
        "unique names a field of a, a twice",
    ),
    "unique float": (lambda: declare({"a": float}, unique=("a",)), "must be text, int, UUID, date, datetime or enum"),
    "unique key": (lambda: declare(unique=("id",)), "holds for every item already"),
    "unique key and more": (lambda: declare({"a": str}, unique=(Unique(("id", "a")),)), "holds for every item already"),
    "unique stamp": (
        lambda: declare({"made": (datetime, created_at())}, unique=("made",)),
        "unique names made, a time that is set for each item",
    ),
    "unique expiry": (
        lambda: declare({"ends": (datetime | None, None)}, expires="ends", unique=("ends",)),
        "unique names ends, a time that is set for each item",
    ),
    "unique with random placement": (
        lambda: declare({"a": str}, unique=("a",), shards=Shards(4, placement="random")),
        "needs a placement that gives each key one home, not random",
    ),
    "another name of unique": (lambda: declare(unique_together=("id",)), "write unique="),
    "sharded without a sort key": (
        lambda: declare(key=Key("{tenant}"), shards=Shards(4)),
        'write sort="{id}" in the key',
    ),
}


@pytest.mark.filterwarnings("ignore:Field name .revision. ")
@pytest.mark.parametrize(("mistake", "advice"), MISTAKES.values(), ids=MISTAKES)
def test_a_common_mistake_is_refused_with_the_correction(mistake: Callable[[], object], advice: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        mistake()

    assert advice in refused.value.reason
    assert "\n" not in str(refused.value)


def test_a_number_without_a_width_is_accepted_if_its_order_does_not_matter() -> None:
    declare({"n": int}, key=Key("{tenant}-{n}", "{id}"))
    declare({"n": int}, key=Key("{tenant}", "{n}", unpadded=("n",)))
    declare({"n": int}, indexes=[an_index(partition="{n}")])
    declare({"n": int}, indexes=[an_index(sort="{n}", unpadded=["n"])])


def test_types_of_pydantic_that_only_validate_are_keys_as_the_types_of_their_values() -> None:
    declare({"at": AwareDatetime, "ends": (AwareDatetime | None, None)}, key=sorted_by("{at}"), expires="ends")
    declare({"born": PastDate}, indexes=[an_index(sort="{born:%Y-%m-%d}")])
    assert plain_types(EmailStr) == {str}


def test_a_default_of_an_enum_is_a_value_of_it() -> None:
    declare(
        {"rank": (Rank, Rank.TENTH), "first": (Rank, 1), "none": (Rank | None, None), "both": (Rank | str, "TENTH")}
    )
