"""The random wait of a process before it asks for shards, and how long the throttle that ends it may come."""

import pytest

from dynashard.growth.cooldowns import Cooldowns
from dynashard.growth.settings import GrowthSettings
from dynashard.runtime import Runtime

pytestmark = pytest.mark.unit

SETTINGS = GrowthSettings()
WAIT = (SETTINGS.wait_low + SETTINGS.wait_high) / 2


@pytest.mark.parametrize(
    ("seconds", "waits"),
    [
        (WAIT - 0.1, True),
        (WAIT, False),
        (WAIT + SETTINGS.cooldown_seconds - 0.1, False),
        (WAIT + SETTINGS.cooldown_seconds, True),
        (-1, True),
    ],
    ids=["during the wait", "at its end", "a cooldown after its end", "later", "at a clock that was set back"],
)
def test_the_first_throttle_within_a_cooldown_after_the_wait_ends_it(seconds: float, *, waits: bool) -> None:
    now = [1000.0]
    cooldowns = Cooldowns(SETTINGS, Runtime(lambda: now[0], random=lambda: 0.5))
    assert cooldowns.waits("users:abc")

    now[0] += seconds

    assert cooldowns.waits("users:abc") is waits


def test_a_cooldown_lasts_until_its_end_and_not_at_a_clock_that_was_set_back() -> None:
    now = [1000.0]
    cooldowns = Cooldowns(SETTINGS, Runtime(lambda: now[0], random=lambda: 0.5))

    claimed = []
    for at in (1000.0, 1000.0, 1059.9, 1060.0, 1119.9, 1059.9):
        now[0] = at
        claimed.append(cooldowns.claim("a", 60))

    assert claimed == [True, False, False, True, False, True]


def test_another_wait_follows_one_that_is_over() -> None:
    now = [1000.0]
    cooldowns = Cooldowns(SETTINGS, Runtime(lambda: now[0], random=lambda: 0.5))
    assert cooldowns.waits("a")
    now[0] += WAIT

    cooldowns.wait_again("a")

    assert cooldowns.waits("a")
    now[0] += WAIT
    assert not cooldowns.waits("a")


def test_a_wait_at_a_clock_that_was_set_back_begins_anew() -> None:
    now = [1000.0]
    cooldowns = Cooldowns(SETTINGS, Runtime(lambda: now[0], random=lambda: 0.5))
    assert cooldowns.waits("a")
    now[0] -= 100
    assert cooldowns.waits("a")

    now[0] += WAIT

    assert not cooldowns.waits("a")


def test_a_wait_follows_a_cooldown_that_is_over() -> None:
    now = [1000.0]
    cooldowns = Cooldowns(SETTINGS, Runtime(lambda: now[0], random=lambda: 0.5))
    assert cooldowns.claim("a", 60)

    now[0] += 60

    assert cooldowns.waits("a")


def test_the_cooldown_that_was_begun_longest_ago_is_forgotten_first() -> None:
    now = [1000.0]
    cooldowns = Cooldowns(SETTINGS, Runtime(lambda: now[0], random=lambda: 0.5))
    for key in [*range(10_000), 0, 10_000]:
        cooldowns.begin(str(key), 2000.0)

    assert [cooldowns.claim(key, 60) for key in ("0", "1")] == [False, True]
