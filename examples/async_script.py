"""A script on asyncio: a thousand readings are written and read by tasks of one thread.

    pip install "dynashard[async]"
    python async_script.py

It works where the SDK's own variables lead, as own_tables.py does.
"""

import asyncio

from dynashard import AsyncDynashard, Create, Entity, Key, Put, Shards, connect


class Sample(Entity, name="script.v1.Sample", key=Key("{run}", "{number:06d}"), shards=Shards(start=16, max=256)):
    """A sample of a run."""

    run: str
    number: int
    value: float = 0.0


async def main(samples: int = 1000) -> float:
    """Store samples, read all of them back, and return the sum of their values."""
    async with AsyncDynashard(
        connect(), table="samples", topology_table="samples-topology", cursor_keys=["a secret of 16 bytes or more"]
    ) as db:
        await db.create_tables()
        stored = db.collection(Sample)
        async with asyncio.TaskGroup() as tasks:
            for number in range(samples):
                tasks.create_task(stored.put(run="today", number=number, value=number / 2))
        await db.transact(
            Put(Sample(run="today", number=1, value=1.5)),
            Create(Sample(run="tomorrow", number=0)),
        )
        async with asyncio.timeout(60):
            return sum([sample.value async for sample in stored.items(run="today", order="ordered")])


if __name__ == "__main__":
    print(asyncio.run(main()))
