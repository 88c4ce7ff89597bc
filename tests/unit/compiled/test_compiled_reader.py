"""Random answers: compiled readers return what the reference codec returns, and a fault in them is found."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Self

import pytest
from pydantic import (
    BeforeValidator,
    ModelWrapValidatorHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import core_schema

from dynashard import Entity, Key, Registry, Shards, definition
from dynashard.compiled import reader
from dynashard.reads import answers
from dynashard.repository import batch_answers
from dynashard_serving.domain import declared
from tests.depth import profile
from tests.unit.compiled.reader_cases import USUAL
from tests.unit.compiled.reader_entities import subjects
from tests.unit.compiled.reader_fuzzer import Fuzzer
from tests.unit.compiled.reader_trials import DECODED, READ, REFUSED, watched

pytestmark = pytest.mark.unit

MODELS = list(declared().models)
DEEP = 1_000_000
USUALLY = 1_500
MUTANT_CALLS = 1_000


@pytest.fixture
def fresh() -> Iterator[None]:
    """Make readers anew, so that a fault becomes part of them, and forget them afterwards."""
    forget_readers()
    yield
    forget_readers()


def forget_readers() -> None:
    """Forget the readers of pages and of batches, and those that the entities keep."""
    caches: list[Any] = [answers.entities_of, answers.fields_of, answers.documents_of, batch_answers.entities_of]
    for subject in subjects():
        vars(subject.entity).pop("_compiled", None)
        caches += [vars(subject.entity)[name] for name in ("_parts", "_documents")]
    for cache in caches:
        cache.cache_clear()


@pytest.mark.timeout(7200)
def test_compiled_readers_return_what_the_reference_returns() -> None:
    fuzzer, number = Fuzzer(1), 0
    enough = DEEP if profile() == "deep" else USUALLY

    with watched():
        while fuzzer.report.answers < enough and not fuzzer.report.failures:
            fuzzer.call(number)
            number += 1

    report = fuzzer.report
    assert not report.failures, report.failures[0]
    assert report.kinds[USUAL, READ] > report.answers // 20
    assert {view for view, way in report.views if way == READ} == {"entities", "fields", "documents", "scan", "batch"}
    assert {way for _, way in report.views} >= {READ, DECODED, REFUSED}


def forgotten(row: Any) -> Any:
    return row.rev.S


def nothing(*_arguments: Any) -> None:
    pass


def always(*_arguments: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("place", "mutant", "found"),
    [
        ("dynashard.compiled.reader._later_revision", forgotten, "_LaterRevision"),
        ("dynashard.compiled.reader._Reader._compare", nothing, "its fields belong to the key"),
        ("dynashard.reads.answers._hidden", always, "instead of"),
        ("dynashard.compiled.documents._SAME_TEXT", core_schema.str_schema(), "documents"),
        ("dynashard.reads.answers._MEMBERS", {"LastEvaluatedKey": Any}, "read_units"),
    ],
    ids=["lineage", "keys not compared", "rows left out", "times unchecked", "capacity forgotten"],
)
@pytest.mark.usefixtures("fresh")
def test_a_fault_in_a_compiled_reader_is_found(
    monkeypatch: pytest.MonkeyPatch, place: str, mutant: Callable[..., Any] | dict[str, Any], found: str
) -> None:
    monkeypatch.setattr(place, mutant)
    fuzzer, number = Fuzzer(0), 0

    with watched():
        while not any(found in failure for failure in fuzzer.report.failures) and number < MUTANT_CALLS:
            fuzzer.call(number)
            number += 1

    assert number < MUTANT_CALLS


def test_every_entity_of_the_domain_is_read_by_a_compiled_reader() -> None:
    for model in MODELS:
        entity = definition(model)
        for index in [None, *entity.indexes.values()]:
            assert reader.entity_reader(entity, index) is not None


class Note(Entity, name="read.v1.Note", key=Key("{tenant_id}", "{id}"), shards=Shards(4), registry=Registry()):
    tenant_id: str
    id: str


def shouted(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def doubled(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """See the number as it is decoded, rather than the text that is stored."""
    return validate(value * 2 if isinstance(value, int) else value)


class Checked(Entity, name="read.v1.Checked", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """An entity whose fields have validators that see values before pydantic does."""

    tenant_id: str
    id: str
    text: Annotated[str, BeforeValidator(shouted)] = ""
    number: Annotated[int, WrapValidator(doubled)] = 0
    either: Annotated[list[int] | None, BeforeValidator(lambda value: value or [0])] = None


class Whole(Entity, name="read.v1.Whole", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """An entity with a validator that sees all values before pydantic does."""

    tenant_id: str
    id: str

    @model_validator(mode="wrap")
    @classmethod
    def _passed_on(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        return validate(values)


def stored_as(model: type[Entity], **attributes: Any) -> dict[str, Any]:
    name = definition(model).name
    key = {"PK": {"S": f"{name}:abc"}, "SK": {"S": "1"}, "tenant_id": {"S": "abc"}, "id": {"S": "1"}}
    return {**key, "Type": {"S": name}, "Rev": {"S": "r1"}, **attributes}


def test_a_validator_of_one_field_leaves_its_entity_compiled() -> None:
    stored = stored_as(Checked, text={"S": "ada"}, number={"N": "21"}, either={"L": []})
    entity, made = definition(Checked), reader.entity_reader(definition(Checked))
    assert made is not None

    read = made.read(stored)

    assert (read.text, read.number, read.either) == ("ADA", 42, [0])
    assert read == entity.reference.decode(stored)
    chosen = reader.fields_reader(entity, ["number"])
    assert chosen is not None
    assert chosen.read(stored) == ({"number": 42},)


def test_an_entity_whose_validator_sees_all_values_first_is_left_to_the_reference() -> None:
    assert reader.entity_reader(definition(Whole)) is None
    assert definition(Whole).decode(stored_as(Whole)).id == "1"


def test_a_row_of_the_same_shard_as_the_one_before_is_compared_by_its_own_fields() -> None:
    made = reader.entity_reader(definition(Note))
    assert made is not None
    stored = {
        "PK": {"S": "read.v1.Note:abc:3"},
        "SK": {"S": "1"},
        "Type": {"S": "read.v1.Note"},
        "Rev": {"S": "r1"},
        "tenant_id": {"S": "abc"},
        "id": {"S": "1"},
    }
    elsewhere = {**stored, "PK": {"S": "read.v1.Note:xyz:3"}}

    read = [made.read(each) for each in (stored, stored, {**stored, "tenant_id": {"S": "xyz"}}, elsewhere, stored)]

    assert [item is not None for item in read] == [True, True, False, False, True]
