"""A program with tables of its own and no backend. `python examples/own_tables.py [ENDPOINT]`.

The argument is the URL of a local engine, such as that of `make run` (http://127.0.0.1:8001). Without it the tables are
created in your account, in the Region of your environment, and cost what docs/tables.md says.
"""

import sys
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


def main(endpoint: str | None = None) -> None:
    """Create the tables, store some readings, and list them."""
    if endpoint is None:
        connection = connect()
    else:
        connection = connect(endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106 - checks none
    with Dynashard(
        connection, table="readings", topology_table="readings-topology", cursor_keys=["a secret of 16 bytes or more"]
    ) as db:
        for name in db.create_tables():
            print(f"created {name}")
        readings = db.collection(Reading)
        readings.batch_write([Reading(site="oslo", sensor=f"s{n % 5}", value=n / 10) for n in range(100)])
        page = readings.list(site="oslo", order="ordered", reverse=True, limit=3)
        print("newest first:", ", ".join(f"{each.sensor}={each.value}" for each in page))
        print("of sensor s1:", sum(1 for _ in readings.items(site="oslo", sensor="s1")))


if __name__ == "__main__":
    main(*sys.argv[1:2])
