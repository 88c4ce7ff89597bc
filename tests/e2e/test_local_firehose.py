"""A small firehose into the local stack whose workers are killed, and writes answered before they are done."""

import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dynashard_checks.firehose import feed, run
from dynashard_local.stack import running_stack
from tests.depth import examples, profile
from tests.e2e.local_process import LocalProcess
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.e2e

PINGS, KILLS, SEED = 20 * examples(120), 3 if profile() == "deep" else 1, 7


def test_every_distinct_ping_is_stored_once_and_summed_up_exactly_though_workers_are_killed(tmp_path: Path) -> None:
    with running_stack(tmp_path, lease=30) as stack:
        report = run(stack, PINGS, KILLS, SEED, lambda _: None)

    assert report.right, report
    assert (report.writers_killed, report.stored) == (KILLS, PINGS * 0.9)
    assert report.consumers_killed > 0
    assert report.late > 0


def test_a_feed_has_its_tenth_of_duplicates_and_is_the_same_for_a_seed() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)

    sent = feed(PINGS, SEED, now)

    assert len(sent) == PINGS
    assert len({ping["id"] for ping in sent}) == PINGS * 0.9
    assert sent == feed(PINGS, SEED, now)
    assert sent != feed(PINGS, SEED + 1, now)


def test_an_accepted_write_is_done_and_its_record_says_so(local_stack: LocalProcess) -> None:
    with closing(local_stack.client("async")) as client:
        body = {"email": "ada@example.com", "display_name": "Ada"}

        accepted = client.put("/v1/users/ada", json=body, headers={"prefer": "respond-async"})

        assert accepted.status_code == 202, accepted.text
        deadline = time.monotonic() + HANG_SECONDS
        while (record := client.get(accepted.headers["location"]).json())["state"] == "pending":
            assert time.monotonic() < deadline
        assert (record["state"], record["status"]) == ("done", 201)
        assert client.get(record["target"]).json()["display_name"] == "Ada"


def test_accepted_pings_are_found_by_episode_and_by_time(local_stack: LocalProcess) -> None:
    with closing(local_stack.client("pings")) as client:
        now = time.time()
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        pings = [
            {"series": "s", "episode": "e", "at": at, "id": f"p{number}", "session_id": "x"} for number in range(20)
        ]

        assert client.post("/v1/pings", json=pings).json() == {"accepted": 20}

        deadline = time.monotonic() + HANG_SECONDS
        by_time: dict[str, str | int] = {"index": "by_time", "at": at[:10], "order": "ordered", "limit": 100}
        while len(items := client.get("/v1/pings", params=by_time).json()["items"]) < len(pings):
            assert time.monotonic() < deadline
        by_episode: dict[str, str | int] = {"series": "s", "episode": "e", "at": at[:10], "limit": 100}
        found = client.get("/v1/pings", params=by_episode).json()["items"]
        assert sorted(item["id"] for item in items) == sorted(item["id"] for item in found)
