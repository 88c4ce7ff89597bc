"""The example that adopts a table: its rows are served where they are, move into shards, and foreign rows stay.

It runs in a process of its own, because the samples of this process use the empty prefix of its visits too.
"""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import boto3
import pytest

from tests.engine.examples.conftest import EXAMPLES

pytestmark = pytest.mark.engine

GROW = """
import adopt_table
from dynashard import Dynashard, definition
from dynashard.resharding import Scope
from dynashard.runtime import Runtime

# A clock that jumps where the change would wait.
now = 2e9


def sleep(seconds):
    global now
    now += seconds


with adopt_table.opened() as db:
    later = Dynashard(db.tables.transport, table=adopt_table.TABLE, topology_table=adopt_table.COUNTS,
                      cursor_keys=["a secret of 16 bytes or more"], runtime=Runtime(lambda: now, sleep))
    resharder, scope = later.resharder(), Scope(definition(adopt_table.Customer))
    resharder.start(scope, 8)
    while (step := resharder.advance(scope.key)).kind != "done":
        for task in step.tasks:
            assert resharder.work(scope.key, task, seconds=5.0)
        sleep(step.seconds)
with adopt_table.opened() as db:
    customers = db.collection(adopt_table.Customer)
    print(*(customers.count(region=region) for region in ("north", "south")))
    print(customers.get(region="north", id="c07").tier)
"""


def rows() -> dict[tuple[str, str], dict[str, Any]]:
    """Return all rows as boto3 reads them."""
    found = boto3.resource("dynamodb").Table("crm").scan()["Items"]
    return {(row["PK"], row["SK"]): row for row in found}


def run(program: str) -> list[str]:
    return subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, "-c", program], cwd=EXAMPLES, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_rows_of_boto3_are_served_then_moved_and_foreign_rows_stay(engine_variables: Mapping[str, str]) -> None:
    assert engine_variables
    run("import adopt_table; adopt_table.write_as_before()")
    before = rows()

    printed = run("import adopt_table; adopt_table.adopt()")
    served = rows()
    counted = run(GROW)
    grown = rows()

    assert printed == ["customers in the north: 30", "gold: Customer 7", "visits of /home: 60 and by v7: 7 s"]
    assert served.keys() - before.keys() == {("customer.v1.Customer:north", "c99")}
    assert [key for key in before if before[key] != served[key]] == [("customer.v1.Customer:north", "c07")]
    assert counted == ["31 30", "gold"]
    customers = {key for key in served if key[0].startswith("customer.v1.Customer")}
    moved = {(partition.rpartition(":")[0], sort) for partition, sort in grown.keys() - served.keys()}
    assert moved == customers
    assert not customers & grown.keys()
    assert {key: row for key, row in served.items() if key not in customers}.items() <= grown.items()
