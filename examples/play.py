"""Simulate an evening of viewers who watch series on the local stack. `python examples/play.py abc`.

The argument is the tenant. Every tenth ping is sent twice, some arrive late, and each is counted once. You can run it
again: on the same day it sends the same pings, and none of them is counted again.
"""

import random
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from local_api import LocalApi, the_tenant

SERIES = {"harbour": 6, "night-train": 3, "the-clockmakers": 1}
VIEWERS, MINUTES, SEED = 60, 40, 1815
BATCH = 500
TIMEOUT_SECONDS = 60


def main(tenant: str) -> None:
    """Send the pings, wait for their roll-ups, and divide the month's revenue."""
    api, source = LocalApi(tenant), random.Random(SEED)
    evening = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(hours=4)
    pings = list(_pings(source, evening))
    sent = [*pings, *source.sample(pings, len(pings) // 10)]
    source.shuffle(sent)
    for at in range(0, len(sent), BATCH):
        api.call("POST", "/v1/pings", sent[at : at + BATCH])
    sys.stdout.write(f"{len(sent):,} pings sent, {len(pings):,} different ones\n")
    answer = _counted(api, f"/v1/revenue?month={evening:%Y-%m}&amount=100000", len(pings))
    sys.stdout.write(f"{answer['pings']:,} pings counted in {evening:%Y-%m}, {answer['seconds']:,} seconds\n")
    for each in answer["licensors"]:
        sys.stdout.write(f"{each['licensor_id'] or 'nobody'}: {each['amount']:,}\n")


def _counted(api: LocalApi, revenue: str, wanted: int) -> dict[str, Any]:
    """Return the revenue when all pings are counted, or when none has been counted for `TIMEOUT_SECONDS`."""
    counted, since = -1, time.monotonic()
    while True:
        answer: dict[str, Any] = api.call("GET", revenue)
        if answer["pings"] != counted:
            counted, since = answer["pings"], time.monotonic()
        if counted >= wanted or time.monotonic() > since + TIMEOUT_SECONDS:
            return answer
        time.sleep(0.5)


def _pings(source: random.Random, evening: datetime) -> Iterator[dict[str, Any]]:
    names, weights = list(SERIES), list(SERIES.values())
    for viewer in range(VIEWERS):
        [series] = source.choices(names, weights)
        begin = evening + timedelta(minutes=source.randint(0, 60))
        for minute in range(source.randint(5, MINUTES)):
            yield {
                "series": series,
                "episode": "s1e1",
                "at": (begin + timedelta(minutes=minute)).isoformat(),
                "id": f"v{viewer}-{minute}",
                "session_id": f"v{viewer}",
                "viewer_id": f"viewer-{viewer}",
            }


if __name__ == "__main__":
    main(the_tenant())
