"""A script on asyncio that calls a backend over REST: many users are created and read by tasks of one thread.

pip install "dynashard-client[async]"
python client_script.py http://127.0.0.1:8000 TOKEN
"""

import asyncio
import sys

from dynashard_client import AsyncClient, Item


class User(Item, path="users"):
    """The fields of a user that the script uses."""

    id: str | None = None
    email: str
    display_name: str


async def main(url: str, token: str, count: int = 100) -> list[str]:
    """Create users, read all of them at once, and return their names in order."""
    async with AsyncClient.rest(url, token=token) as client, asyncio.timeout(60):
        users = client.collection(User)
        async with asyncio.TaskGroup() as tasks:
            made = [
                tasks.create_task(users.create(User(email=f"u{number}@example.com", display_name=f"U{number:03d}")))
                for number in range(count)
            ]
        read = await asyncio.gather(*(users.get(each.result(), consistent=True) for each in made))
        listed = [user.id async for user in users.items(order="ordered")]
        print(f"{len(read)} were created; {len(listed)} are listed")
        return sorted(user.display_name for user in read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
