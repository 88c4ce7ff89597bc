"""A program with tables of its own and no backend: `python own_tables.py`.

It works where the SDK's own variables lead: in your account, where the tables cost what docs/tables.md says, or on a
local engine, such as that of `make run`:

    export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8001 AWS_REGION=us-east-1
    export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local

The command line changes its shard counts:

    DYNASHARD_DB=own_tables:opened dynashard reshard start Reading oslo --to 8 --wait
"""

from datetime import datetime

from dynashard import Dynashard, Entity, Index, Key, Shards, connect, created_at, new_id


class Reading(
    Entity,
    name="reading.v1.Reading",
    key=Key(partition="{site}", sort="{id}"),
    shards=Shards(start=4, max=256),  # the count grows by itself if writes are throttled
    indexes=[Index("GSI1", "by_sensor", partition="{site}:{sensor}", sort="{id}")],
):
    """A value that a sensor of a site has measured."""

    site: str
    id: str = new_id()
    sensor: str
    value: float
    measured_at: datetime = created_at()


def opened() -> Dynashard:
    """Open the tables. Sends no request."""
    return Dynashard(
        connect(), table="readings", topology_table="readings-topology", cursor_keys=["a secret of 16 bytes or more"]
    )


def main() -> None:
    """Create the tables, store some readings, and list them."""
    with opened() as db:
        for name in db.create_tables():
            print(f"created {name}")
        readings = db.collection(Reading)
        readings.batch_write([Reading(site="oslo", sensor=f"s{n % 5}", value=n / 10) for n in range(100)])
        page = readings.list(site="oslo", order="ordered", reverse=True, limit=3)
        print("newest first:", ", ".join(f"{each.sensor}={each.value}" for each in page))
        print("of sensor s1:", sum(1 for _ in readings.items(site="oslo", sensor="s1")))


if __name__ == "__main__":
    main()
