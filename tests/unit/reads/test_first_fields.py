"""The first fields of a key determine its beginning, and no other key begins with it."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynashard.errors import InvalidKeyError
from dynashard.keys import TemplateError, TemplateField, parse
from dynashard.reads.first_fields import text_of_first_fields
from tests.depth import examples

pytestmark = pytest.mark.unit

VALUES = st.lists(st.sampled_from(["a", "b", "#", "_", "a#", "-", "0"]), min_size=1, max_size=3).map("".join)


@st.composite
def templates(draw: st.DrawFn) -> str:
    literals = st.sampled_from(["", "#", "_", "x#", "#a_", "0"])
    names = draw(st.lists(st.sampled_from(["{s}", "{t}", "{u}", "{n:02d}"]), min_size=1, max_size=4, unique=True))
    return "".join(draw(literals) + name for name in names) + draw(literals)


def values() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"s": VALUES, "t": VALUES, "u": VALUES, "n": st.integers(0, 12)})


@settings(max_examples=examples(400))
@given(templates(), values(), values(), st.data())
def test_a_key_has_the_text_of_its_first_fields_only_with_these_first_fields(
    text: str, mine: dict[str, Any], theirs: dict[str, Any], data: st.DataObject
) -> None:
    try:
        template = parse(text, numeric=lambda name: name == "n")
    except TemplateError:
        assume(condition=False)
    count = data.draw(st.integers(0, len(template.first_fields)))
    asked = {name: mine[name] for name in template.first_fields[:count]}
    theirs |= data.draw(st.sampled_from([{}, asked]))
    try:
        key, begin = template.render(theirs), text_of_first_fields(template, asked)
    except InvalidKeyError:
        assume(condition=False)

    # With all fields the leading text is the whole key, so nothing has to end the last field.
    begins = key == begin if len(asked) == len(template.fields) else key.startswith(begin)
    assert begins == all(theirs[name] == value for name, value in asked.items())


@pytest.mark.parametrize(
    ("text", "given", "begin"),
    [
        ("team_{t}#schedule_{s}#shift_{u}", {}, "team_"),
        ("team_{t}#schedule_{s}#shift_{u}", {"t": "1"}, "team_1#schedule_"),
        ("team_{t}#schedule_{s}#shift_{u}", {"t": "1", "s": "2"}, "team_1#schedule_2#shift_"),
        ("team_{t}#schedule_{s}#shift_{u}", {"t": "1", "s": "2", "u": "3"}, "team_1#schedule_2#shift_3"),
        ("{n:04d}{s}", {"n": 7}, "0007"),
    ],
)
def test_the_text_of_first_fields(text: str, given: dict[str, Any], begin: str) -> None:
    assert text_of_first_fields(parse(text, numeric=lambda name: name == "n"), given) == begin


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        ({"s": "2"}, "t", "give both"),
        ({"u": "2"}, "t", "give both"),
        ({"x": "2"}, "x", "is not one of the first fields"),
        ({"t": "a#schedule_b"}, "t", "may not contain"),
        ({"t": ""}, "t", "may not be empty"),
    ],
)
def test_fields_that_do_not_lead_are_refused(given: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidKeyError, match=reason) as refused:
        text_of_first_fields(parse("team_{t}#schedule_{s}#shift_{u}"), given)

    assert refused.value.field == field


def test_field_whose_end_only_the_whole_key_decides_does_not_lead() -> None:
    template = parse("{author}_{year:04d}", numeric=lambda name: name == "year")

    assert template.first_fields == ()
    assert [part.name for part in template.parts if isinstance(part, TemplateField)] == ["author", "year"]
    with pytest.raises(InvalidKeyError, match="is not one of the first fields"):
        text_of_first_fields(template, {"author": "ada"})
