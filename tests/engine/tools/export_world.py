"""Pings to export, and the rows of the files they are exported to."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from domain.samples.pings import Ping

DAY = datetime(2026, 11, 20, tzinfo=UTC)


def ping(tenant: str, number: int, at: datetime = DAY, **more: Any) -> Ping:
    return Ping(
        tenant_id=tenant, series="dark", episode=f"e{number % 3}", at=at, id=f"p{number}", session_id="s", **more
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return sorted((orjson.loads(line) for line in path.read_bytes().splitlines()), key=lambda row: str(row["at"]))


def rows_of(items: Sequence[Ping]) -> list[dict[str, Any]]:
    return [json.loads(item.model_dump_json()) for item in items]
