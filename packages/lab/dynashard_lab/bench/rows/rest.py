"""Round-robin listings over the API: complete, and each request within what API Gateway takes."""

import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import Any, Final
from urllib.parse import quote

import orjson

from domain.samples.users import User
from dynashard import Dynashard, Key, LeasedTopology, Registry, Shards
from dynashard.transport import Transport, connect
from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.layer import CURSOR_KEYS, SETTINGS
from dynashard_lab.bench.measure import Fact
from dynashard_lab.bench.peers.handlers import Context, event, variables
from dynashard_lab.bench.world import World, create_topology_table
from dynashard_serving.api.app import App, build_app
from dynashard_serving.api.settings import Settings

PAGE: Final = 50
MOST_BYTES: Final = 10_240 - 2_048
"""What API Gateway takes for the request line and the headers, without 2 KB for a token and the like."""
_OK: Final = 200


def over_rest(world: World, shards: int, names: Sequence[str]) -> Iterator[Fact]:
    """Yield what a listing of users with these ids missed or repeated over so many shards, and its longest line.

    Raises:
        RuntimeError: a page is not answered with 200.
    """
    subject, tenant, topology = f"REST, round-robin, {shards} shards", f"rest{shards}", f"{stored.TOPOLOGY}-{shards}"
    transport = connect(world.engine_url, **SETTINGS)
    _store(transport, topology, tenant, shards, names)
    settings = variables(world.engine_url, stored.TABLE, topology, stored.REGION, stored.KEYS[0])
    with open(os.devnull, "w", encoding="utf-8") as log, redirect_stdout(log):  # noqa: PTH123 - a device
        listed, longest = _list(build_app(Settings.from_env(settings), transport), tenant)
    transport.close()
    wrong = len(listed) - len(set(listed)) + len(set(names) ^ set(listed))
    yield Fact(subject, f"items of {len(names)} missed or repeated", wrong, "items", 0)
    yield Fact(subject, "bytes of a request line, at most", longest, "bytes", MOST_BYTES)


def _store(transport: Transport, topology: str, tenant: str, shards: int, names: Sequence[str]) -> None:
    """Store users. The first write also makes their declared count the one in force."""

    class Sharded(
        User,
        name="user.v1.User",
        key=Key(partition="{tenant_id}", sort="{id}"),
        shards=Shards(shards),
        registry=Registry(),
    ):
        """A user of the API, without its indexes."""

    create_topology_table(transport, topology)
    counts = LeasedTopology(transport, topology)
    db = Dynashard(transport, table=stored.TABLE, topology=counts, cursor_keys=CURSOR_KEYS)
    users = [Sharded(tenant_id=tenant, id=each, email="ada@example.com", display_name="Ada") for each in names]
    db.collection(Sharded).batch_write(put=users)


def _list(app: App, tenant: str) -> tuple[list[str], int]:
    """Return the ids of all pages, and the bytes of the longest request line."""
    listed, longest, query = list[str](), 0, f"limit={PAGE}"
    while query:
        longest = max(longest, len(f"GET /v1/users?{query} HTTP/1.1"))
        answer = app.handle(event("/v1/users", query, tenant=tenant), Context())
        if answer["statusCode"] != _OK:
            raise RuntimeError(f"a page over REST was answered with {answer['statusCode']}: {answer['body']}")
        page: dict[str, Any] = orjson.loads(answer["body"])
        listed += [item["id"] for item in page["items"]]
        query = f"limit={PAGE}&cursor={quote(page['cursor'], safe='')}" if page["cursor"] else ""
    return listed, longest
