"""Random bodies of answers: readers return what the codec returns, and a fault in a reader is found."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic_core import core_schema

from dynashard.compiled.row_form import _RowFunction
from dynashard.reads import page_form
from dynashard.repository import batch_form
from dynashard_checks.fuzz_readers import Fuzzer, main
from dynashard_checks.reader_cases import USUAL
from dynashard_checks.reader_trials import DECODED, READ, REFUSED, watched
from tests.depth import examples

pytestmark = pytest.mark.unit

DEEP = 6_000
MUTANT_CALLS = 1_000


@pytest.fixture
def fresh() -> Iterator[None]:
    """Make readers anew, so that a fault becomes part of them, and forget them afterwards."""
    caches: list[Any] = [page_form.entities_of, page_form.fields_of, page_form.documents_of, batch_form.entities_of]
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_readers_return_what_the_codec_returns() -> None:
    fuzzer = Fuzzer(1)

    with watched():
        for number in range(examples(DEEP)):
            fuzzer.call(number)

    report = fuzzer.report
    assert report.failures == []
    assert report.kinds[USUAL, READ] > report.answers // 20
    assert {view for view, way in report.views if way == READ} == {"entities", "fields", "documents", "scan", "batch"}
    assert {way for _, way in report.views} >= {READ, DECODED, REFUSED}


def forgotten(_function: _RowFunction, row: Any) -> Any:
    return row.rev.S


def of_any_kind(function: _RowFunction, *arguments: Any, made: Any = _RowFunction.__init__) -> None:
    made(function, *arguments)
    function._unusual = ["False"]


def always(*_arguments: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("place", "mutant", "found"),
    [
        ("dynashard.compiled.row_form._RowFunction._later_revision", forgotten, "_LaterRevision"),
        ("dynashard.compiled.row_form._RowFunction.__init__", of_any_kind, "item of another entity"),
        ("dynashard.reads.page_form._Pages._hidden", always, "instead of"),
        ("dynashard.compiled.stored_documents._SAME_TEXT", core_schema.str_schema(), "documents"),
        ("dynashard.reads.page_form._MEMBERS", {"LastEvaluatedKey": Any}, "read_units"),
    ],
    ids=["lineage", "other entities", "rows left out", "times unchecked", "capacity forgotten"],
)
@pytest.mark.usefixtures("fresh")
def test_a_fault_in_a_reader_is_found(
    monkeypatch: pytest.MonkeyPatch, place: str, mutant: Callable[..., Any] | dict[str, Any], found: str
) -> None:
    monkeypatch.setattr(place, mutant)
    fuzzer, number = Fuzzer(0), 0

    with watched():
        while not any(found in failure for failure in fuzzer.report.failures) and number < MUTANT_CALLS:
            fuzzer.call(number)
            number += 1

    assert number < MUTANT_CALLS


@pytest.mark.usefixtures("fresh")
def test_the_command_ends_with_1_if_readers_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--answers", "20"]) == 0
    assert "0 wrong" in capsys.readouterr().out

    monkeypatch.setattr("dynashard.reads.page_form._Pages._hidden", always)

    assert main(["--answers", "5000"]) == 1
    assert "wrong: call" in capsys.readouterr().out
