"""The benchmark of calls with `await`: a coarse bound, because a test machine is busy."""

import asyncio

import pytest

from dynashard_lab.bench.awaited import ratios
from dynashard_lab.bench.world import canned_process

pytestmark = pytest.mark.unit


def test_an_awaited_get_takes_less_than_twice_the_cpu_time_of_a_plain_one() -> None:
    with canned_process() as url:
        alone, together = asyncio.run(ratios(url, rounds=20))

    assert 0.5 < together < 1.6
    assert 0.8 < alone < 2.0
