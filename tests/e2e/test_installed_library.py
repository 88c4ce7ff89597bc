"""The library as a stranger has it: wheels in a fresh environment, a folder with a program, and a local engine."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from dynashard_checks.schedules.wire import port_of_engine_in_memory
from tests.e2e.local_process import ROOT
from tests.wheels import built, installed

pytestmark = pytest.mark.e2e

SHOP = '''
from dynashard import Dynashard, Entity, Index, Key, Shards, connect, new_id


class Order(
    Entity,
    name="order.v1.Order",
    key=Key("{shop}", "{id}"),
    shards=Shards(2, max=16),
    indexes=[Index("GSI1", "by_state", "{shop}:{state}", "{id}")],
):
    shop: str
    id: str = new_id()
    state: str | None = None


def opened(**more):
    """Short times, so that a resize need not wait long for other processes."""
    more.setdefault("transport", connect())
    names = {"table": "orders", "topology_table": "counts"}
    return Dynashard(**names, cursor_keys=["16 bytes or more"], lease=1.0, operation_seconds=5.0, **more)
'''
FILL = """
import json, sys
import dynashard, shop

number = int(sys.argv[1])
with shop.opened() as db:
    created, again = db.create_tables(), db.create_tables()
    orders = db.collection(shop.Order)
    orders.batch_write(shop.Order(shop="abc", state="sent" if n < 10 else None) for n in range(number))
    listed = [order.id for page in orders.pages(shop="abc", order="ordered", limit=1000) for order in page]
    print(json.dumps({
        "created": created, "again": again, "from": dynashard.__file__,
        "listed": len(listed), "sorted": listed == sorted(set(listed)), "sent": orders.count(shop="abc", state="sent"),
    }))
"""
GROW = """
import json
import shop
from dynashard import connect, definition
from dynashard.errors import ThrottledError
from dynashard.growth.opening import GrowthOptions
from dynashard.growth.settings import GrowthSettings
from dynashard.resharding import Scope
from dynashard.testing import Fault, FaultyTransport, throttled
from time import sleep

# Only so that the test need not wait for minutes.
SOON = GrowthOptions(settings=GrowthSettings(cooldown_seconds=0.5, wait_low=0.1, wait_high=0.2))
scope, strike = Scope(definition(shop.Order), "order.v1.Order:hot"), throttled("PutItem").strike
hot = False


def struck(send, put):
    return strike(send, put) if hot and "hot" in str(put) else send(put)


engine = FaultyTransport(connect(), [Fault("PutItem", struck, nth=None)])
with shop.opened(transport=engine, growth=SOON) as db:
    orders = db.collection(shop.Order)
    made = [orders.create(shop="hot").id for _ in range(100)]
    hot, refused = True, 0
    while not db.resharder().busy():
        try:
            orders.create(shop="hot")
        except ThrottledError:
            refused += 1
        sleep(0.3)
    hot = False
    while db.resharder().busy():
        made.append(orders.create(shop="hot").id)
        sleep(0.2)
    found = sorted(order.id for order in orders.items(shop="hot"))
    print(json.dumps({"refused": refused, "same": found == sorted(made), "count": db.resharder().status(scope).count}))
"""


@dataclass(frozen=True)
class Stranger:
    """A folder with a program, an environment with the wheels, and an empty engine."""

    folder: Path
    programs: Path
    environment: dict[str, str]

    def run(self, *command: str) -> str:
        """Run a program of the environment, which must succeed, and return what it prints."""
        done = subprocess.run(  # noqa: S603 - our own command lines
            [self.programs / command[0], *command[1:]],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def summary(self, *command: str) -> Any:
        """Run a program that prints JSON in its last line."""
        return json.loads(self.run(*command).splitlines()[-1])


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment in which the wheels are installed."""
    return installed(built(tmp_path_factory), tmp_path_factory.mktemp("installed") / "environment")


@pytest.fixture
def stranger(programs: Path, tmp_path: Path) -> Iterator[Stranger]:
    for name, text in {"shop.py": SHOP, "fill.py": FILL, "grow.py": GROW}.items():
        (tmp_path / name).write_text(text)
    with port_of_engine_in_memory() as port:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{port}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "DYNASHARD_DB": "shop:opened",
        }
        yield Stranger(tmp_path, programs, environment)


def test_a_script_has_tables_of_its_own_and_the_command_line_knows_them(stranger: Stranger) -> None:
    filled = stranger.summary("python", "fill.py", "300")
    shown = stranger.summary("dynashard", "topology", "Order", "abc", "--json")

    operated = [stranger.summary("dynashard", *line.split(), "--json") for line in ("verify", "hot", "reshard status")]

    assert Path(filled.pop("from")).is_relative_to(stranger.programs.parent)
    assert filled == {
        "created": ["orders", "counts"], "again": [], "listed": 300, "sorted": True, "sent": 10,
    }  # fmt: skip
    assert (shown["count"], sum(shard["items"] for shard in shown["shards"])) == (2, 300)
    assert (operated[0]["items"], operated[0]["found"], operated[1]["changing"], operated[2]) == (300, {}, [], [])


@pytest.mark.deep
def test_ten_thousand_items_are_listed_and_resharded_and_throttles_make_counts_grow(stranger: Stranger) -> None:
    filled = stranger.summary("python", "fill.py", "10000")
    changed = stranger.summary(
        "dynashard", "reshard", "start", "Order", "abc", "--to", "4", "--share", "1", "--wait", "--json"
    )
    verified = stranger.summary("dynashard", "verify", "--json")
    grown = stranger.summary("python", "grow.py")
    more = stranger.summary("python", "fill.py", "1")

    assert (filled["listed"], filled["sorted"]) == (10_000, True)
    assert (changed["count"], changed["stage"]) == (4, "stable")
    assert (verified["items"], verified["found"]) == (10_000, {})
    assert grown["refused"] >= 1
    assert (grown["same"], grown["count"]) == (True, 4)
    assert (more["created"], more["listed"], more["sorted"]) == ([], 10_001, True)


@pytest.mark.deep
def test_fastapi_serves_entities(stranger: Stranger) -> None:
    shutil.copy(ROOT / "examples/fastapi_orders.py", stranger.folder)
    command = [str(stranger.programs / "python"), "-m", "uvicorn", "fastapi_orders:app", "--port", "0"]
    with subprocess.Popen(  # noqa: S603
        command, cwd=stranger.folder, env=stranger.environment, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        url = next(found[1] for line in server.stderr if (found := re.search(r"running on (http://[\d.:]+)", line)))
        try:
            made = [httpx.post(f"{url}/orders", json={"shop": "abc", "item": f"i{n}"}).json() for n in range(5)]
            page = httpx.get(f"{url}/shops/abc/orders", params={"limit": 3}).json()
            rest = httpx.get(f"{url}/shops/abc/orders", params={"limit": 3, "cursor": page["cursor"]}).json()
        finally:
            server.terminate()

    assert page["items"] + rest["items"] == sorted(made, key=lambda order: order["id"], reverse=True)
    assert rest["cursor"] is None
