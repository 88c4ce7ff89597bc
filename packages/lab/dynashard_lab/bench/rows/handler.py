"""The whole API handler against the same routes on Powertools, validation and boto3's Table, on the local engine."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any, Final, TextIO
from unittest.mock import patch

import boto3
import orjson

from domain.samples.users import User
from dynashard.transport import connect
from dynashard_lab.bench import stored
from dynashard_lab.bench.measure import Apart, Here, Limit, Row
from dynashard_lab.bench.peers.handlers import OURS, PEER, TENANT, Context, event, variables
from dynashard_lab.bench.world import World
from dynashard_serving.discovery import index_of, module_names
from dynashard_serving.domain import INDEX, PACKAGE

USERS: Final = 1_600
"""So many that a page of 50 comes from one shard of 16."""
PAGE: Final = 50
NEW: Final = '{"email": "ada@example.com", "display_name": "Ada Lovelace"}'
BASELINE: Final = "Powertools + validation + boto3"
DYNASHARD: Final = "Dynashard"
MODULES: Final = ((BASELINE, PEER), (DYNASHARD, OURS))


def rows(world: World) -> Iterator[Row]:
    """Yield a GET, a page of 50, a POST, and the cold start. Both handlers run here, one event after the other."""
    identity = _store(world)
    settings = variables(world.engine_url, stored.TABLE, stored.TOPOLOGY, stored.REGION, stored.KEYS[0])
    limits = {DYNASHARD: Limit(0.25)}
    one, page, new = event(f"/v1/users/{identity}"), event("/v1/users", f"limit={PAGE}"), event("/v1/users", body=NEW)
    with patch.dict(os.environ, settings), open(os.devnull, "w", encoding="utf-8") as log:  # noqa: PTH123 - a device
        handlers = _handlers(log)
        single = [Here(name, _run(each, one, lambda body: int(body["id"] == identity))) for name, each in handlers]
        yield Row("API handler, GET", single, repeat=20, items=1, limits=limits)
        listed = [Here(name, _run(each, page, lambda body: len(body["items"]))) for name, each in handlers]
        yield Row("API handler, list 50", listed, repeat=8, items=PAGE, limits=limits)
        created = [
            Here(name, _run(each, new, lambda body: int(body["tenant_id"] == TENANT))) for name, each in handlers
        ]
        yield Row("API handler, POST", created, repeat=8, items=1)
    place = [world.engine_url, stored.TABLE, stored.TOPOLOGY, stored.REGION, stored.KEYS[0], identity]
    limits = {DYNASHARD: Limit(0.45)}
    with bundled_domain() as path:
        command = ["-m", "dynashard_lab.bench.peers.handlers"]
        apart = [Apart(name, [*command, module, *place], path) for name, module in MODULES]
        yield Row("API handler, cold start to the first GET", apart, repeat=1, items=1, limits=limits)


@contextmanager
def bundled_domain() -> Iterator[Path]:
    """Copy the domain into a folder as a bundle holds it, with an index, because a checkout imports all entities."""
    package = Path(import_module(PACKAGE).__path__[0])
    with TemporaryDirectory(prefix="dynashard-bench-") as folder:
        copytree(package, Path(folder, PACKAGE), ignore=ignore_patterns("__pycache__"))
        Path(folder, PACKAGE, INDEX).write_text(json.dumps(index_of(module_names(PACKAGE))))
        yield Path(folder)


Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def _handlers(log: TextIO) -> list[tuple[str, Handler]]:
    """Return both handlers; what they log goes to `log`."""

    def quiet(handler: Handler) -> Handler:
        def called(request: dict[str, Any], context: Any) -> dict[str, Any]:
            with redirect_stdout(log):
                return handler(request, context)

        return called

    with redirect_stdout(log):
        return [(name, quiet(import_module(module).handler)) for name, module in MODULES]


def _run(handler: Handler, request: dict[str, Any], count: Callable[[Any], int]) -> Callable[[], int]:
    return lambda: count(orjson.loads(handler(request, Context())["body"]))


def _store(world: World) -> str:
    """Store the same users for both, and return the id of one."""
    users = [
        User(tenant_id=TENANT, email=f"user{number}@example.com", display_name=f"User Number {number}")
        for number in range(USERS)
    ]
    transport = connect(world.engine_url, stored.REGION, access_key=stored.KEYS[0], secret_key=stored.KEYS[1])
    world.db(transport).collection(User).batch_write(put=users)
    transport.close()
    keys = {"aws_access_key_id": stored.KEYS[0], "aws_secret_access_key": stored.KEYS[1]}
    resource: Any = boto3.resource("dynamodb", region_name=stored.REGION, endpoint_url=world.engine_url, **keys)
    with resource.Table(stored.TABLE).batch_writer() as batch:
        for user in users:
            document = user.model_dump(mode="json", exclude_none=True)
            batch.put_item(Item={"PK": f"peer.User:{TENANT}", "SK": user.id, **document})
    return users[0].id
