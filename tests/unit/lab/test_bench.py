"""The benchmark: realistic data, and answers of the canned server as DynamoDB would give them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from dynashard import definition
from dynashard_lab.bench.canned import Asked, CannedAnswers, canned_server
from dynashard_lab.bench.clients.interface import DIRECT, FLOOR, RAW, SDK, load
from dynashard_lab.bench.measure import how_many
from dynashard_lab.bench.stored import (
    BATCH,
    FIELDS_QUERY,
    GET,
    PAGE,
    PUT,
    SHARDS,
    TOPOLOGY,
    batch_get,
    batch_write,
    user_item,
)
from dynashard_lab.bench.users import User, user
from dynashard_tools.catalog import COMMANDS

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
OPERATIONS = ("get", "put", "batch_write", "batch_get", "page", "three_fields", "fan_out")


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


def answer(answers: CannedAnswers, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(answers(Asked(operation, {}, orjson.dumps(request))).body)
    return body


def test_a_canned_put_returns_the_old_item_only_if_it_is_asked_for() -> None:
    answers = CannedAnswers()

    assert answer(answers, "PutItem", PUT)["Attributes"] == answer(answers, "GetItem", GET)["Item"]
    assert "Attributes" not in answer(answers, "PutItem", {"TableName": "bench-table", "Item": user_item(0, 1)})


def test_a_canned_query_returns_only_the_fields_of_its_projection() -> None:
    page = answer(CannedAnswers(), "Query", FIELDS_QUERY)
    named = answer(
        CannedAnswers(),
        "Query",
        {**FIELDS_QUERY, "ProjectionExpression": "#p0, SK", "ExpressionAttributeNames": {"#p0": "email"}},
    )

    assert len(page["Items"]) == PAGE
    assert page["Items"][0] == {name: user_item(0, 0)[name] for name in ("id", "email", "logins")}
    assert set(named["Items"][0]) == {"SK", "email"}


def test_a_canned_batch_has_an_item_for_each_key() -> None:
    answers = CannedAnswers()
    request = batch_get()

    found = answer(answers, "BatchGetItem", request)["Responses"]["bench-table"]

    keys = request["RequestItems"]["bench-table"]["Keys"]
    assert [{name: item[name] for name in ("PK", "SK")} for item in found] == keys
    assert found[7]["logins"] == {"N": "49"}
    assert answer(answers, "BatchWriteItem", batch_write())["UnprocessedItems"] == {}
    assert len(batch_write()["RequestItems"]["bench-table"]) == BATCH


def test_canned_shard_counts_are_those_that_were_first_written() -> None:
    answers = CannedAnswers()
    wanted = {"RequestItems": {TOPOLOGY: {"Keys": [{"partition": {"S": "user.v1.User"}}]}}}
    before = answer(answers, "BatchGetItem", wanted)["Responses"][TOPOLOGY]
    for count in ("16", "32"):
        record = {"partition": {"S": "user.v1.User"}, "number_of_shards": {"N": count}}
        answer(answers, "PutItem", {"TableName": TOPOLOGY, "Item": record})

    [after] = answer(answers, "BatchGetItem", wanted)["Responses"][TOPOLOGY]

    assert before == []
    assert after["number_of_shards"] == {"N": "16"}


def test_canned_items_can_be_larger() -> None:
    plain, larger = (answer(CannedAnswers(padding=padding), "GetItem", GET)["Item"] for padding in (0, 5_000))

    assert len(larger["title"]["S"]) == len(plain["title"]["S"]) + 5_000
    assert {**larger, "title": None} == {**plain, "title": None}


def test_every_function_and_command_starts_with_the_domain_that_adopts() -> None:
    handlers = sorted((ROOT / "functions").glob("*/handler.py"))
    modules = [
        *(".".join(handler.relative_to(ROOT).with_suffix("").parts) for handler in handlers),
        "dynashard_local.run",
        *sorted({command.place.partition(":")[0] for command in COMMANDS.values()}),
        "dynashard",
    ]
    program = f"import {', '.join(modules)}\n"
    program += "from dynashard_serving.domain import declared\n"
    program += "shards = [(one.path, dynashard.definition(one.entity).shards) for one in declared().entities]\n"
    program += "print([(path, each and each.adopt) for path, each in shards])"
    paths = os.pathsep.join(
        [str(ROOT / "packages/checks/dynashard_checks/soak/unsharded"), *filter(None, [os.environ.get("PYTHONPATH")])]
    )

    printed = subprocess.run(  # noqa: S603 - this checkout's own modules
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert printed.strip() == "[('users', 'unsharded'), ('operations', None)]"


@pytest.mark.parametrize("name", [RAW, SDK, DIRECT, FLOOR])
def test_every_operation_of_a_client_answers_all_items(name: str) -> None:
    with canned_server(CannedAnswers()) as url:
        client = load(name, url)
        answers = [how_many(getattr(client, operation)()) for operation in OPERATIONS]
        client.close()

    assert answers == [1, 1, BATCH, PAGE, PAGE, PAGE, SHARDS * PAGE]
