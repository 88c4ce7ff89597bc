"""All clients of the benchmark do the same work, so that a ratio never compares different work."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dynashard_lab.bench.agreement import OPERATIONS, differences, work_of
from dynashard_lab.bench.clients.floor import Floor
from dynashard_lab.bench.clients.interface import DIRECT, FLOOR, RAW
from dynashard_lab.bench.clients.layer import Layer, _key
from dynashard_lab.bench.clients.raw import Botocore
from dynashard_lab.bench.stored import ATTACHED, BATCH, FIELDS, PAGE, SHARDS

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
PEERS = ROOT / ".venv-bench/bin/python"


@pytest.mark.deep
def test_clients_return_the_same_items_by_the_same_requests() -> None:
    """Those of the development environment, and all of them where `make bench` has installed them."""
    python = str(PEERS) if PEERS.exists() else sys.executable

    done = subprocess.run(  # noqa: S603 - this checkout's own module
        [python, "-m", "dynashard_lab.bench.agreement"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.returncode) == ("", 0), done.stderr
    if PEERS.exists():
        assert "left out" not in done.stderr


def test_the_baseline_returns_what_is_stored() -> None:
    work = work_of(RAW)

    one = ("2Xk000000000000000000000001", "user000001@example.com", "7")
    none = ("2Xk000000000000000000000000", "user000000@example.com", "0")
    last_of_page = ("2Xk000000000000000000001584", "user001584@example.com", str(1584 * 7))
    last_of_batch = ("2Xk000000000000000000000099", "user000099@example.com", str(99 * 7))
    assert tuple(work) == OPERATIONS
    attached = (ATTACHED, *one[1:])
    assert [each.ends for each in work.values()] == [
        (one, one),
        (attached, attached),
        *[(one, one)] * 2,
        (),
        (none, last_of_batch),
        *[(none, last_of_page)] * 3,
        *[()] * 2,
    ]
    assert [each.items for each in work.values()] == [*[1] * 4, BATCH, *[PAGE] * 4, *[SHARDS * (PAGE + 1)] * 2]
    assert [len(each.sent) for each in work.values()] == [*[1] * 9, *[SHARDS] * 2]


def test_an_update_of_another_attribute_is_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layer, "update", lambda client: client._users.update(_key(1), set={"title": "Engineer"}))

    [line] = differences([RAW, DIRECT], ["update"])

    assert "stores on a condition: PK Rev SK title updated_at" in line


def fewer(client: Layer) -> Any:
    return client._users.list({"tenant_id": "acme"}, limit=PAGE - 1).items


def two_requests(client: Layer) -> Any:
    return [item for _ in range(2) for item in client._users.list({"tenant_id": "acme"}, limit=PAGE // 2).items]


def whole_items(client: Layer) -> Any:
    return client._users.list({"tenant_id": "acme"}, limit=PAGE).items


def four_fields(client: Layer) -> Any:
    fields = [*FIELDS, "title"]
    return client._users.list({"tenant_id": "acme"}, limit=PAGE, fields=fields).items


def another_item(client: Layer) -> Any:
    return client._users.batch_get([{"tenant_id": "acme", "id": "2Xk000000000000000000000002"}])[0]


def nothing(client: Layer) -> Any:
    del client


def reading_instead(client: Layer) -> Any:
    return client.get()


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        ("page", fewer),
        ("page", two_requests),
        ("three_fields", whole_items),
        ("three_fields", four_fields),
        ("get", another_item),
        ("get", nothing),
        ("put", reading_instead),
    ],
)
def test_other_work_is_found(operation: str, changed: Callable[[Layer], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layer, operation, changed)

    [line] = differences([RAW, DIRECT], [operation])

    assert line.startswith(f"{DIRECT}, {operation}: Work(")


def test_a_put_without_the_condition_or_an_attribute_is_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    before = work_of(RAW, ["put"])["put"]
    request = {"TableName": "bench-table", "Item": {"PK": {"S": "a"}, "SK": {"S": "b"}}, "ReturnValues": "ALL_OLD"}
    monkeypatch.setattr(Botocore, "put", lambda client: client._client.put_item(**request).get("Attributes"))

    assert work_of(RAW, ["put"])["put"] == replace(before, sent=("stores always: PK SK",))


def test_the_floor_sends_what_the_others_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Floor, "batch_get", lambda client: client.page())

    [line] = differences([FLOOR], ["batch_get", "page"])

    assert line.startswith(f"{FLOOR}, batch_get: Work(")
