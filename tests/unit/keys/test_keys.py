"""Two different keys never have the same stored key, for any declaration and any values."""

from datetime import UTC, date, datetime, timedelta, timezone
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynashard import EntityDefinition, Key, Registry, Shards, definition
from dynashard.errors import DeclarationError, InvalidKeyError
from dynashard.keys import TemplateError, key_text, may_collide, parse, storable_key
from dynashard.routing import Router
from dynashard.schema import PK, SK
from dynashard.topology import DeclaredTopology
from tests.declaring import declare, sorted_by
from tests.depth import examples

pytestmark = pytest.mark.unit

HOSTILE = ["a", "b", "0", "1", ":", "#", "_", "-", "/", "|", "\0", "é", "e\u0301", " ", ":1", "_1", "x" * 3]
LAYOUTS = [None, Shards(1), Shards(2), Shards(16), Shards(10, "modulo")]


class Kind(StrEnum):
    A = "a"
    A_B = "a_b"
    B_1 = "b:1"


class Shouting(str):
    """A `str` with another `__str__`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "a"

    def __format__(self, spec: str) -> str:
        return "a"


texts = st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4).map("".join)
moments = st.builds(
    datetime,
    st.sampled_from([1, 999, 2026, 9999]),
    st.just(1),
    st.sampled_from([1, 2]),
    st.integers(0, 2),
    tzinfo=st.sampled_from([UTC, timezone(timedelta(hours=1)), timezone(timedelta(hours=-1))]),
)
VALUES: dict[type, st.SearchStrategy[Any]] = {
    str: texts | texts.map(Shouting),
    int: st.integers(-12, 120),
    UUID: st.integers(0, 2).map(lambda number: UUID(int=number)),
    date: st.sampled_from([date(1, 1, 1), date(2026, 1, 11), date(2026, 11, 1)]),
    datetime: moments,
    Kind: st.sampled_from(Kind),
}
FORMATS = {int: ["", ":d", ":02d", ":2d", ":x", ":03x"], date: ["", ":%Y%m%d"], datetime: ["", ":%Y%m%dT%H"]}
FIELDS: dict[str, type] = {"s": str, "t": str, "m": int, "n": int, "u": UUID, "d": date, "w": datetime, "k": Kind}


@st.composite
def templates(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=0, max_size=3, unique=True))
    constants = st.sampled_from(["", "", "_", "#", ":", "a", "a#", "_1", "-", "1", "#b_", "\0", "/", "|"])
    fields = [f"{{{name}{draw(st.sampled_from(FORMATS.get(FIELDS[name], [''])))}}}" for name in names]
    return "".join(draw(constants) + field for field in fields) + draw(constants)


@st.composite
def registries(draw: st.DrawFn) -> Registry:
    """Up to four entities that are accepted together; some share partitions, some have a separator of their own."""
    registry = Registry()
    shards = draw(st.sampled_from(LAYOUTS))
    partition = draw(templates())
    for name in ("a", "b", "a.b", "1"):
        prefix, separator = draw(st.sampled_from([("a", ":"), (None, ":"), ("", "_"), ("", "-"), ("team", ":")]))
        key = Key(partition if prefix == "team" else draw(templates()), draw(templates()), prefix, separator)
        layout = shards if prefix == "team" else draw(st.sampled_from(LAYOUTS))
        try:
            declare({**FIELDS}, name=name, key=key, shards=layout, registry=registry)
        except DeclarationError:
            continue
    return registry


def stored(entity: EntityDefinition[Any], fields: dict[str, Any]) -> tuple[str, str]:
    wire = Router(DeclaredTopology()).stored_key(entity, entity.key_of(fields))
    return wire[PK]["S"], wire[SK]["S"]


def identity(entity: EntityDefinition[Any], fields: dict[str, Any]) -> tuple[str, ...]:
    """Return the identity of a key for a reader: the entity, and the text of each field."""
    parts = [*entity.partition.parts, *entity.sort.parts]
    return (entity.name, *(key_text(p.name, fields[p.name], p.spec) for p in parts if not isinstance(p, str)))


@settings(max_examples=examples(300))
@given(registry=registries(), data=st.data())
def test_different_keys_are_stored_differently_or_refused(registry: Registry, data: st.DataObject) -> None:
    owners: dict[tuple[str, str], tuple[str, ...]] = {}
    for entity in registry.values():
        fields = st.fixed_dictionaries({name: VALUES[FIELDS[name]] for name in entity.key_fields})
        for values in data.draw(st.lists(fields, max_size=12)):
            try:
                place = stored(entity, values)
            except InvalidKeyError:
                continue

            assert owners.setdefault(place, identity(entity, values)) == identity(entity, values)


@settings(max_examples=examples(400))
@given(template=templates(), data=st.data())
@example(template="{s}_{t}", data=None)
@example(template="{s}_{n:04d}", data=None)
@example(template="{n}_{m}", data=None)
@example(template="{n:02d}{m:02d}", data=None)
def test_texts_of_one_template_are_read_in_one_way_only(template: str, data: st.DataObject | None) -> None:
    try:
        parsed = parse(template, numeric=lambda name: FIELDS[name] is int)
    except TemplateError:
        return
    fields = st.fixed_dictionaries({name: VALUES[FIELDS[name]] for name in parsed.fields})
    samples = data.draw(st.lists(fields, max_size=20)) if data else SAMPLES
    owners: dict[str, tuple[str, ...]] = {}
    for values in samples:
        try:
            text = parsed.render(values)
        except InvalidKeyError:
            continue
        texts_of = tuple(key_text(p.name, values[p.name], p.spec) for p in parsed.parts if not isinstance(p, str))

        assert owners.setdefault(text, texts_of) == texts_of


SAMPLES: list[dict[str, Any]] = [
    {"s": one, "t": other, "n": number, "m": 1 - number}
    for one in ("a", "a_a", "_", "_a", "a_", "__", "a_0001", "a_1")
    for other in ("a", "a_a", "_", "_a", "a_", "__")
    for number in (-1, 0, 1, 9, 11, 99, 111, 9999, 10000)
]


@pytest.mark.parametrize(
    ("template", "one", "other"),
    [
        ("{s}_{t}", {"s": "a_b", "t": "c"}, {"s": "a", "t": "b_c"}),
        ("{s}#{t}", {"s": "a#", "t": "b"}, {"s": "a", "t": "#b"}),
        ("{s}__{t}", {"s": "a_", "t": "b"}, {"s": "a", "t": "_b"}),
        ("{s}_{n:02d}_{t}", {"s": "a_01", "n": 2, "t": "b"}, {"s": "a", "n": 1, "t": "02_b"}),
        ("{n:02d}{s}", {"n": 100, "s": "a"}, {"n": 10, "s": "0a"}),
        ("{n:02d}{s}", {"n": -1, "s": "a"}, {"n": 10, "s": "a"}),
        ("{n}_{s}", {"n": 1, "s": "_"}, {"n": 1, "s": "__"}),
        ("{s}{n:02d}", {"s": "a1", "n": 23}, {"s": "a", "n": 123}),
        ("{s}-{n}", {"s": "a-", "n": 1}, {"s": "a", "n": -1}),
        ("{s}1{n}", {"s": "a1", "n": 1}, {"s": "a", "n": 11}),
        ("{s}a{n:x}", {"s": "aa", "n": 11}, {"s": "a", "n": 171}),
    ],
)
def test_two_values_that_would_give_equal_keys_are_never_both_accepted(
    template: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    entity = definition(declare({"s": str, "t": str, "n": int}, key=sorted_by(template), any_width=True))
    taken = []
    for values in (one, other):
        try:
            taken.append(stored(entity, {"tenant": "x", **values}))
        except InvalidKeyError as refused:
            assert refused.field in values  # noqa: PT017 - either may be the one that is refused

    assert len(set(taken)) == len(taken)


@pytest.mark.parametrize(
    ("template", "first"),
    [("a#{x}#{y}", ("x", "y")), ("{n:03d}{x}", ("n", "x")), ("{x}{n:03d}", ()), ("{n:03d}{x}{m:03d}", ("n",))],
)
def test_the_first_fields_of_a_key_end_before_the_next_begins(template: str, first: tuple[str, ...]) -> None:
    assert parse(template).first_fields == first


@pytest.mark.parametrize("tenant", ["a:1", ":", "a:", ":a", "", "a:b:c"])
def test_partition_values_may_not_be_empty_or_divide_the_partition_key(tenant: str) -> None:
    entity = definition(declare(shards=Shards(4)))

    with pytest.raises(InvalidKeyError) as refused:
        entity.key_of({"tenant": tenant, "id": "1"})

    assert refused.value.field == "tenant"


def test_tenants_that_look_like_shards_are_kept_apart() -> None:
    entity = definition(declare(shards=Shards(2)))
    tenants = ["a", "a_1", "a1", "1", "0", "a\0", "A", "\uff41", "é", "e\u0301"]

    places = {stored(entity, {"tenant": tenant, "id": "1"})[0].rpartition(":")[0] for tenant in tenants}

    assert places == {f"thing.v1.Thing:{tenant}" for tenant in tenants}


def test_an_entity_with_its_own_separator_accepts_values_that_end_like_a_shard() -> None:
    entity = definition(declare(key=Key("{tenant}", "{id}", "", "_"), shards=Shards(10, "modulo")))

    places = {stored(entity, {"tenant": tenant, "id": "1"}) for tenant in ("/a", "/a_1", "/a_1_1", "/a_10")}

    assert len(places) == 4
    with pytest.raises(InvalidKeyError, match="tenant may not contain ':'"):
        stored(entity, {"tenant": "thing.v1.Thing:abc", "id": "1"})


@pytest.mark.parametrize("value", ["a#b", "#", "a:b", "a#"])
def test_entities_that_share_partitions_refuse_values_with_the_separator(value: str) -> None:
    registry = Registry()
    for name, sort in (("one", "a#{id}"), ("other", "b:{id}")):
        declare(name=name, key=Key("{tenant}", sort, prefix="team"), registry=registry)

    for entity in registry.values():
        with pytest.raises(InvalidKeyError, match="it divides keys"):
            entity.key_of({"tenant": "t", "id": value})


def test_keys_of_a_single_entity_accept_the_separator_of_families() -> None:
    entity = definition(declare())

    assert entity.key_of({"tenant": "t", "id": "a#b:c/d|e"}).sort == "a#b:c/d|e"


SUFFIX = len(":1024")


@pytest.mark.parametrize(("character", "size"), [("a", 1), ("é", 2), ("日", 3), ("😀", 4)])
@pytest.mark.parametrize("shards", [None, Shards(1), Shards(1024)])
def test_partition_key_is_measured_in_bytes_with_its_longest_suffix(
    character: str, size: int, shards: Shards | None
) -> None:
    entity = definition(declare(shards=shards))
    room = 2048 - SUFFIX - len("thing.v1.Thing:")
    longest = "a" * (room % size) + character * (room // size)

    key = entity.key_of({"tenant": longest, "id": "1"})

    assert len(key.partition.encode()) == 2048 - SUFFIX
    with pytest.raises(InvalidKeyError, match="the partition key has 2044 bytes; DynamoDB takes at most 2043"):
        entity.key_of({"tenant": longest + "a", "id": "1"})


@pytest.mark.parametrize(("character", "size"), [("a", 1), ("é", 2), ("日", 3), ("😀", 4)])
def test_sort_key_is_measured_in_bytes(character: str, size: int) -> None:
    entity = definition(declare())
    longest = "a" * (1024 % size) + character * (1024 // size)

    key = entity.key_of({"tenant": "t", "id": longest})

    assert len(key.sort.encode()) == 1024
    with pytest.raises(InvalidKeyError, match="the sort key has 1025 bytes; DynamoDB takes at most 1024"):
        entity.key_of({"tenant": "t", "id": longest + "a"})


@pytest.mark.parametrize("fields", [{"tenant": "a\ud800", "id": "1"}, {"tenant": "a", "id": "\udfff"}])
def test_a_lone_surrogate_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidKeyError, match="half of a surrogate pair"):
        definition(declare(shards=Shards(4))).key_of(fields)


@pytest.mark.parametrize("value", [True, 1.5, None, b"a", ["a"], {"a"}, object()])
def test_values_without_a_key_text_are_refused(value: object) -> None:
    with pytest.raises(
        InvalidKeyError, match=r"id is .+, which cannot be part of a key; write a text, an int"
    ) as refused:
        definition(declare()).key_of({"tenant": "t", "id": value})

    assert refused.value.field == "id"


@pytest.mark.parametrize(
    ("kind", "template", "value", "reason"),
    [
        (datetime, "{x}", datetime(2026, 1, 1), "a time in a key needs a time zone"),  # noqa: DTZ001 - that is the point
        (datetime, "{x}", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "outside the years 1 to 9999"),
        (datetime, "{x}", datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=1))), "outside the years"),
        (int, "{x:02d}", 100, "100 does not fit 2 characters"),
        (int, "{x:02d}", -1, "-1 does not fit 2 characters"),
        (int, "{x:02d}", "1", "'1' does not fit the format '02d'"),
        (int, "{x}", 10**1024, "the sort key has 1025 bytes"),
    ],
)
def test_values_that_do_not_fit_their_place_are_refused(kind: Any, template: str, value: Any, reason: str) -> None:
    entity = definition(declare({"x": kind}, key=sorted_by(template), any_width=True))

    with pytest.raises(InvalidKeyError, match=reason):
        entity.key_of({"tenant": "t", "x": value})


@pytest.mark.parametrize("spec", ["", ":d", ":x", ":02d"])
def test_numbers_too_long_for_any_key_are_refused(spec: str) -> None:
    entity = definition(declare({"x": int}, key=sorted_by(f"{{x{spec}}}"), any_width=True))

    with pytest.raises(InvalidKeyError, match="x: the number is too long for a key"):
        entity.key_of({"tenant": "t", "x": 10**5000})


def test_one_moment_has_one_key_in_every_zone() -> None:
    entity = definition(declare({"x": datetime}, key=sorted_by("{x}")))
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)

    keys = {
        entity.key_of({"tenant": "t", "x": moment.astimezone(timezone(timedelta(hours=h)))}) for h in range(-12, 13)
    }

    assert {key.sort for key in keys} == {"2026-01-01T12:00:00.000000Z"}


def test_the_text_of_a_str_subclass_is_used_rather_than_its_str_method() -> None:
    entity = definition(declare(key=Key("{tenant}", "{id}")))

    key = entity.key_of({"tenant": Shouting("b:c".replace(":", ".")), "id": Shouting("d")})

    assert (key.partition, key.sort) == ("thing.v1.Thing:b.c", "d")
    with pytest.raises(InvalidKeyError, match="tenant may not contain ':'"):
        entity.key_of({"tenant": Shouting("b:c"), "id": "d"})


def test_the_size_check_returns_the_measured_bytes() -> None:
    assert storable_key("é", what="sort", limit=2) == "é"


@pytest.mark.parametrize("template", ["{id!r}", "{a.b}", "{0}", "x{id!s}"])
def test_a_template_takes_plain_field_names_alone(template: str) -> None:
    with pytest.raises(TemplateError, match="braces hold a field name"):
        parse(template)


@pytest.mark.parametrize("number", [2**8192 - 1, 1 - 2**8192])
def test_the_longest_number_that_a_key_takes_is_written_in_full(number: int) -> None:
    assert int(key_text("n", number)) == number

    with pytest.raises(InvalidKeyError, match="too long"):
        key_text("n", number + (1 if number > 0 else -1))


def test_a_text_is_free_unless_its_field_is_said_to_be_a_number() -> None:
    assert parse("{name}{n:02d}").render({"name": "a1", "n": 2}) == "a102"
    with pytest.raises(TemplateError, match="unclear where name ends"):
        parse("{name}{n:02d}", numeric=lambda _: True)


def test_a_number_after_a_text_may_not_contain_what_starts_it() -> None:
    template = parse("{name}-{n}", numeric=lambda name: name == "n")

    assert template.render({"name": "a-b", "n": 5}) == "a-b-5"
    with pytest.raises(InvalidKeyError, match="n may not contain '-': it starts the field"):
        template.render({"name": "a-b", "n": -5})


@pytest.mark.parametrize(
    ("one", "other", "divided_by", "possible"),
    [
        ("a", "a", "", True),
        ("a", "b", "", False),
        ("axb", "a{x}b", "", True),
        ("ab", "a{x}b", "", False),
        ("aba", "ab{x}ba", "", False),
        ("ax", "b{x}", "", False),
        ("xa", "{x}b", "", False),
        ("a{x}b", "a{y}b", "", True),
        ("a{x}b", "a{y}c", "", False),
        ("a{x}b", "c{y}b", "", False),
        ("ab{x}", "a{y}", "", True),
        ("{x}ab", "{y}b", "", True),
        ("a{x}", "{y}b", "", True),
        ("{x}#b{y}", "{x}#c{y}", "", True),
        ("{x}#b{y}", "{x}#c{y}", "#", False),
        ("{x}#{y}", "{x}", "", True),
        ("{x}#{y}", "{x}", "#", False),
        ("{x}#{y}", "{x}:{y}", "#:", False),
    ],
)
def test_templates_collide_if_some_values_could_render_alike(
    one: str, other: str, divided_by: str, *, possible: bool
) -> None:
    assert may_collide(parse(one), parse(other), frozenset(divided_by)) is possible
    assert may_collide(parse(other), parse(one), frozenset(divided_by)) is possible


PIECES = st.lists(st.sampled_from(["a", "b", "ab", "{x}", "#"]), min_size=1, max_size=4).filter(
    lambda pieces: pieces.count("{x}") <= 1
)


@settings(max_examples=examples(2_000))
@given(PIECES, PIECES, st.sampled_from(["a", "b", "ab", "ba", "aab"]), st.sampled_from(["a", "b", "ab", "ba", "aab"]))
def test_templates_that_render_alike_are_never_said_not_to(one: list[str], other: list[str], x: str, y: str) -> None:
    mine, theirs = parse("".join(one)), parse("".join(other))

    if mine.render({"x": x}) == theirs.render({"x": y}):
        assert may_collide(mine, theirs, frozenset())
        assert may_collide(mine, theirs, frozenset("#"))


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        ("%Y-%m-%d", ["0007-03-04", "0999-12-31", "1000-01-01", "2026-11-28", "9999-12-31"]),
        ("%F", ["0007-03-04", "0999-12-31", "1000-01-01", "2026-11-28", "9999-12-31"]),
        ("%G-%V", ["0007-09", "1000-01", "1000-01", "2026-48", "9999-52"]),
        ("%%Y%Y", ["%Y0007", "%Y0999", "%Y1000", "%Y2026", "%Y9999"]),
    ],
)
@pytest.mark.parametrize("kind", [date, datetime])
def test_years_before_1000_are_written_with_four_digits(kind: type, spec: str, texts: list[str]) -> None:
    days = [date(7, 3, 4), date(999, 12, 31), date(1000, 1, 1), date(2026, 11, 28), date(9999, 12, 31)]
    values = days if kind is date else [datetime(each.year, each.month, each.day, tzinfo=UTC) for each in days]

    assert [key_text("at", value, spec) for value in values] == texts == sorted(texts)
