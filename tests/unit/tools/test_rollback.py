"""`dynashard rollback`: which release an environment returns to, and what becomes of its aliases."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import botocore.session
import pytest
from botocore.stub import ANY, Stubber
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard.schema import TOPOLOGY_UNDERSTOOD
from dynashard_tools.failure import CommandError
from dynashard_tools.rollback.aliases import function_of, move
from dynashard_tools.rollback.releases import Function, Move, Version, plan, releases_of
from tests.depth import examples

pytestmark = pytest.mark.unit

BEGAN = datetime(2026, 11, 23, 12, tzinfo=UTC)
PARTS = ("Api", "Writer", "Changes")


def function(part: str, marks: str, live: int | None = None, **more: Any) -> Function:
    """A function with a version of each release, which were published an hour apart."""
    versions = [Version(number, mark, BEGAN + timedelta(hours=ord(mark))) for number, mark in enumerate(marks, 1)]
    return Function(part, f"{part}-function", len(marks) if live is None else live, "revision", versions, **more)


def backend(marks: str, **more: Any) -> list[Function]:
    return [function(part, marks, **more) for part in PARTS]


def after(functions: Sequence[Function], moves: Sequence[Move]) -> list[Function]:
    """What the functions are after some moves, as Lambda keeps it."""
    made = {each.function.name: each for each in moves}
    return [_moved(each, made[each.name]) if each.name in made else each for each in functions]


def _moved(each: Function, step: Move) -> Function:
    withdrawn = each.withdrawn | {each.live} if step.withdraws else each.withdrawn
    return replace(each, live=step.to.number, withdrawn=withdrawn - {step.to.number})


def deployed(functions: Sequence[Function], mark: str) -> list[Function]:
    """What the functions are after a release is deployed."""
    at = BEGAN + timedelta(hours=ord(mark))
    return [
        replace(each, live=len(each.versions) + 1, versions=[*each.versions, Version(len(each.versions) + 1, mark, at)])
        for each in functions
    ]


def live(functions: Sequence[Function]) -> set[str]:
    return {each.running.release for each in functions if each.running}


def test_it_returns_all_functions_to_the_release_before() -> None:
    functions = backend("abc")

    wanted = plan(functions)

    assert wanted.target.mark == "b"
    assert live(after(functions, wanted.moves)) == {"b"}


def test_versions_that_ran_together_return_together_whatever_their_numbers_are() -> None:
    api, writer = function("Api", "abc"), replace(function("Writer", "bc"), live=2)

    wanted = plan([api, writer])

    assert {each.function.part: each.to.number for each in wanted.moves} == {"Api": 2, "Writer": 1}


@given(st.permutations(PARTS), st.integers(0, len(PARTS)))
@settings(max_examples=examples(60))
def test_an_interrupted_rollback_goes_on_to_the_same_release_and_a_complete_one_does_nothing(
    order: Sequence[str], done: int
) -> None:
    functions = sorted(backend("abc"), key=lambda each: order.index(each.part))
    interrupted = after(functions, plan(functions).moves[:done])

    again = plan(interrupted)
    complete = after(interrupted, again.moves)

    assert (again.target.mark, len(again.moves)) == ("b", len(PARTS) - done)
    assert live(complete) == {"b"}
    assert plan(complete).moves == []


def test_a_release_that_was_rolled_back_is_not_returned_to() -> None:
    functions = backend("abc")
    bad_again = deployed(after(functions, plan(functions).moves), "d")

    assert plan(bad_again).target.mark == "b"
    assert [each.mark for each in releases_of(bad_again) if each.withdrawn] == ["c"]


def test_a_named_release_runs_again_and_is_no_longer_rolled_back() -> None:
    functions = backend("abc")
    back = after(functions, plan(functions).moves)

    forward = plan(back, "c")

    assert live(after(back, forward.moves)) == {"c"}
    assert not any(each.withdrawn for each in after(back, forward.moves))


@pytest.mark.parametrize(
    ("to", "why"), [("x", "'x' is not a release .* There are: c, b, a"), ("", "is the beginning of several")]
)
def test_an_unknown_or_ambiguous_release_is_refused_with_those_that_exist(to: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        plan(backend("abc"), to)


def test_a_single_release_has_nothing_before_it() -> None:
    with pytest.raises(CommandError, match=r"there is no earlier release to return to\. There are: a\. Choose one"):
        plan(backend("a"))


def test_a_function_that_is_newer_than_the_release_stays() -> None:
    functions = [*backend("abc"), function("Prewarm", "c")]

    wanted = plan(functions)

    assert [each.part for each in wanted.younger] == ["Prewarm"]
    assert len(wanted.moves) == len(PARTS)


def test_a_release_with_deleted_versions_is_refused() -> None:
    functions = [function("Api", "abc"), function("Writer", "ac")]

    with pytest.raises(CommandError, match="Writer-function has no version of release b, but older ones"):
        plan(functions)


def test_a_deployment_that_shifts_traffic_is_to_be_cancelled_first() -> None:
    shifting = replace(function("Api", "abc", live=2), shifting={3: 0.1})

    with pytest.raises(CommandError, match=r"10% go to version 3.*cancel-update-stack"):
        plan([shifting, function("Writer", "abc")])


@pytest.fixture
def stubbed() -> Iterator[tuple[Any, Stubber]]:
    client = botocore.session.get_session().create_client(
        "lambda",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 -- never sent
    )
    with Stubber(client) as stub:
        yield client, stub
        stub.assert_no_pending_responses()


def test_a_version_is_remembered_as_rolled_back_before_the_alias_changes(stubbed: tuple[Any, Stubber]) -> None:
    client, stub = stubbed
    [step, *_] = plan(backend("ab")).moves
    about = {"FunctionName": "Api-function"}
    remembered = {"Name": "withdrawn-2", "FunctionVersion": "2", "Description": ANY}
    stub.add_response("create_alias", {}, {**about, **remembered})
    stub.add_response("update_alias", {}, {**about, "Name": "live", "FunctionVersion": "1", "RevisionId": "revision"})

    move(client, step)


def test_a_version_that_runs_again_is_no_longer_remembered(stubbed: tuple[Any, Stubber]) -> None:
    client, stub = stubbed
    [step, *_] = plan(backend("ab", live=1, withdrawn=frozenset({2})), "b").moves
    about = {"FunctionName": "Api-function"}
    stub.add_response("update_alias", {}, {**about, "Name": "live", "FunctionVersion": "2", "RevisionId": "revision"})
    stub.add_response("delete_alias", {}, {**about, "Name": "withdrawn-2"})

    move(client, step)


def test_an_alias_that_somebody_else_has_changed_is_left_alone(stubbed: tuple[Any, Stubber]) -> None:
    client, stub = stubbed
    [step, *_] = plan(backend("ab", withdrawn=frozenset({2})), "a").moves
    stub.add_client_error("update_alias", "PreconditionFailedException", "The RevisionId provided does not match")

    with pytest.raises(CommandError, match=r"the alias of Api-function cannot be changed.*RevisionId"):
        move(client, step)


def test_versions_name_what_they_understand_and_older_ones_name_nothing(stubbed: tuple[Any, Stubber]) -> None:
    client, stub = stubbed
    about = {"LastModified": "2026-11-23T12:00:00.000+0000", "Runtime": "python3.13"}
    versions = [
        {**about, "Version": "1", "Description": "release a", "Environment": {"Variables": {"RELEASE": "a"}}},
        {**about, "Version": "2", "Description": "release b", "Environment": {"Variables": {"UNDERSTANDS": "x,y"}}},
        {**about, "Version": "3", "Description": "release c"},
    ]
    alias = {"Name": "live", "FunctionVersion": "3", "RevisionId": "r"}
    stub.add_response("list_aliases", {"Aliases": [alias]}, {"FunctionName": "api"})
    stub.add_response("list_versions_by_function", {"Versions": versions}, {"FunctionName": "api"})

    found = function_of(client, "Api", "api")

    assert [sorted(each.understands) for each in found.versions] == [[], ["x", "y"], []]


def test_a_release_understands_what_all_of_its_functions_understand() -> None:
    both, one = frozenset({"x", "y"}), frozenset({"y"})
    functions = [
        replace(each, versions=[replace(version, understands=knows) for version in each.versions])
        for each, knows in zip(backend("ab"), (both, one, both), strict=True)
    ]

    assert plan(functions).understands == one
    # Nothing changes, so nothing is asked.
    assert plan(after(functions, plan(functions).moves), "a").understands == frozenset(TOPOLOGY_UNDERSTOOD)
