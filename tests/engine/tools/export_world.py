"""Pings to export, and the rows of the files they are exported to."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson

from domain.samples.pings import Ping

_MONTH: Final = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
DAY: Final = (_MONTH - timedelta(days=1)).replace(day=20)
"""The 20th of last month: pings of a fixed day would expire."""
DATE: Final = f"{DAY:%Y-%m-%d}"


def ping(tenant: str, number: int, at: datetime = DAY, **more: Any) -> Ping:
    return Ping(
        tenant_id=tenant, series="dark", episode=f"e{number % 3}", at=at, id=f"p{number}", session_id="s", **more
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return sorted((orjson.loads(line) for line in path.read_bytes().splitlines()), key=lambda row: str(row["at"]))


def rows_of(items: Sequence[Ping]) -> list[dict[str, Any]]:
    return [json.loads(item.model_dump_json()) for item in items]
