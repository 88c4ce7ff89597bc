"""A table that exists already: its rows are read and changed where they are, and then move into shards.

    python adopt_table.py

First it does what your other service has done: it creates the table, and writes customers, visits and a row of another
kind by boto3. Then it adopts both. It works where the SDK's own variables lead, as own_tables.py does. The count is
changed by the command line:

    DYNASHARD_DB=adopt_table:opened dynashard reshard start Customer --to 8 --wait
"""

from hashlib import md5
from typing import Any

import boto3

from dynashard import Dynashard, Entity, Key, Shards, connect

TABLE, COUNTS = "crm", "crm-shard-counts"


class Customer(
    Entity,
    name="customer.v1.Customer",
    key=Key(partition="{region}", sort="{id}"),  # stored as customer.v1.Customer:north and c07
    shards=Shards(8, adopt="unsharded"),  # where the rows are now; nothing moves before a reshard
):
    """A customer, as the service has stored it."""

    region: str
    id: str
    name: str
    tier: str = "basic"  # a new field, which stored rows lack


class Visit(
    Entity,
    name="visit.v1.Visit",
    key=Key(partition="{page}", sort="{visitor}", prefix="", separator="_"),  # stored as /home_7 and v1: no prefix
    shards=Shards(10, placement="modulo"),  # the ten shards that the service has calculated by md5; they never change
):
    """A visit of a page, in the layout that AWS has published."""

    page: str
    visitor: str
    seconds: int


def opened() -> Dynashard:
    """Open the tables. Sends no request."""
    return Dynashard(connect(), table=TABLE, topology_table=COUNTS, cursor_keys=["a secret of 16 bytes or more"])


def write_as_before() -> None:
    """Create a table and write its rows, without Dynashard."""
    dynamodb = boto3.resource("dynamodb")
    create_table(dynamodb, TABLE, "PK", "SK")
    with dynamodb.Table(TABLE).batch_writer() as batch:
        for number in range(60):
            row = {"region": "north" if number % 2 else "south", "id": f"c{number:02}", "name": f"Customer {number}"}
            batch.put_item({"PK": f"customer.v1.Customer:{row['region']}", "SK": row["id"], **row})
            visit = {"page": "/home", "visitor": f"v{number}", "seconds": number}
            shard = int(md5(f"/home{visit['visitor']}".encode(), usedforsecurity=False).hexdigest(), 16) % 10 + 1
            batch.put_item({"PK": f"/home_{shard}", "SK": visit["visitor"], **visit})
        batch.put_item({"PK": "LOCK#import", "SK": "-", "owner": "batch-7"})  # no entity has it


def create_table(dynamodb: Any, name: str, *keys: str) -> None:
    """Create a table whose keys are texts."""
    dynamodb.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)],
        BillingMode="PAY_PER_REQUEST",
    ).wait_until_exists()


def adopt() -> None:
    """Read and change the rows by their entities. `create_tables` is not for this table: it wants three indexes."""
    create_table(boto3.resource("dynamodb"), COUNTS, "partition")
    with opened() as db:
        customers, visits = db.collection(Customer), db.collection(Visit)
        print("customers in the north:", sum(1 for _ in customers.items(region="north")))
        print("gold:", customers.update("c07", region="north", tier="gold").name)
        customers.create(region="north", id="c99", name="New")
        print("visits of /home:", visits.count(page="/home"), "and by v7:", visits.get("v7", page="/home").seconds, "s")


if __name__ == "__main__":
    write_as_before()
    adopt()
