"""The benchmark: fair order of contenders, ratios to the baseline, and realistic data."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import orjson
import pytest

from bench.canned import Asked, CannedAnswers, user_item
from bench.measure import Contender, Fact, Row, measure
from bench.users import User, user
from domain import ENTITIES
from dynashard import definition

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]


def test_contenders_run_once_unmeasured_and_then_take_turns_at_being_first() -> None:
    turns: list[str] = []
    contenders = [Contender(name, partial(turns.append, name)) for name in ("a", "b", "c")]

    figures = measure(Row("turns", contenders, repeat=2, limits={"a": 1.0, "b": -1.0}), rounds=3)

    assert "".join(turns) == "abc" + "aabbcc" + "bbccaa" + "ccaabb"
    assert [figure.contender for figure in figures] == ["a", "b", "c"]
    assert figures[0].ratio == 1.0
    assert [figure.met for figure in figures] == [True, False, None]


@pytest.mark.parametrize(("limit", "met"), [(1.0, True), (0.9, False), (None, None), (0, False)])
def test_a_fact_is_met_up_to_its_limit(limit: float | None, met: object) -> None:
    assert Fact("subject", "name", 1.0, "units", limit).met is met


def test_the_entity_decodes_the_items_of_the_canned_server() -> None:
    decoded = definition(User).decode(user_item(3, 12345))

    stamps = {"created_at", "updated_at"}
    assert decoded.model_dump(exclude=stamps) == user(12345).model_dump(exclude=stamps)


def test_canned_pages_end_after_all_items_of_a_shard() -> None:
    answers = CannedAnswers(per_shard=25)
    request = {"ExpressionAttributeValues": {":pk": {"S": "user.v1.User:acme:7"}}, "Limit": 10}
    counts: list[int] = []
    keys: list[str] = []

    while True:
        page = orjson.loads(answers(Asked("Query", {}, orjson.dumps(request))).body)
        counts.append(len(page["Items"]))
        keys += [item["SK"]["S"] for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            break
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    assert counts == [10, 10, 5]
    # A scan keeps its position as a key, so the keys must ascend.
    assert keys == sorted(set(keys))
    assert page["Items"][0]["PK"] == {"S": "user.v1.User:acme:7"}


def test_every_function_and_command_starts_with_the_domain_that_adopts() -> None:
    handlers = sorted((ROOT / "functions").glob("*/handler.py"))
    modules = [
        *(".".join(handler.relative_to(ROOT).with_suffix("").parts) for handler in handlers),
        "local.run",
        "tools.commands",
        "domain",
        "dynashard",
    ]
    program = (
        f"import {', '.join(modules)}; print(dynashard.definition(domain.User).shards.adopt, len(domain.ENTITIES))"
    )
    paths = os.pathsep.join([str(ROOT / "bench" / "soak" / "unsharded"), *filter(None, [os.environ.get("PYTHONPATH")])])

    printed = subprocess.run(  # noqa: S603 - this checkout's own modules
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert printed == ["unsharded", str(len(ENTITIES))]
