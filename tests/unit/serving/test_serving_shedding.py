"""Load shedding: expensive requests are refused while DynamoDB does not keep up, and let through when it does."""

from collections.abc import Callable

import pytest

from dynashard.errors import OverloadedError
from dynashard.transport.interface import Consumed, Meter
from dynashard_serving.shedding import HALF_LIFE_SECONDS, LONGEST_RETRY_SECONDS, SLOW_SECONDS, LoadSignal

pytestmark = pytest.mark.unit

TABLE = "TableReadMaxOnDemandThroughputExceeded"
KEY_RANGE = "TableReadKeyRangeThroughputExceeded"


class World:
    """A signal with a clock and a random number that tests set."""

    def __init__(self, draw: float = 0.0) -> None:
        self.now = 1000.0
        self.draw = draw
        self.signal = LoadSignal(lambda: self.now, lambda: self.draw)

    def observe(
        self, *, answered: int = 0, throttled: int = 0, reason: str = TABLE, seconds: float = 0.005, **more: object
    ) -> None:
        meter = Meter()
        for _ in range(answered):
            meter.record("GetItem", Consumed(requests=1))
        for _ in range(throttled):
            meter.throttled(reason)
        self.signal.observe(meter, seconds, **{"expensive": False, **more})  # type: ignore[arg-type]

    def refuses(self) -> bool:
        try:
            self.signal.refuse_expensive()
        except OverloadedError:
            return True
        return False

    def share(self) -> float:
        """Return the share of expensive requests that is refused now, by trying every draw."""
        draws = [draw / 100 for draw in range(100)]
        refused = 0
        for draw in draws:
            self.draw = draw
            refused += self.refuses()
        return refused / len(draws)


def test_nothing_is_refused_at_first_or_while_dynamodb_keeps_up() -> None:
    world = World()

    assert not world.refuses()
    world.observe(answered=1000, throttled=400)
    assert not world.refuses()


def test_refusals_grow_with_the_share_of_attempts_that_dynamodb_refuses() -> None:
    shares = []
    for throttled in (0, 50, 60, 80, 100):
        world = World()
        world.observe(answered=100 - throttled, throttled=throttled)
        shares.append(world.share())

    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.15 < shares[1] < shares[3] < shares[4]
    assert shares[4] > 0.9


def test_one_failed_request_causes_few_refusals() -> None:
    world = World()

    world.observe(throttled=4)

    assert 0 < world.share() < 0.4


def test_a_hot_key_range_of_one_tenant_causes_no_refusals() -> None:
    world = World()

    world.observe(throttled=1000, reason=KEY_RANGE)

    assert not world.refuses()


@pytest.mark.parametrize(
    "trouble",
    [
        lambda world: world.observe(code="engine_unavailable"),
        lambda world: world.observe(answered=1, seconds=SLOW_SECONDS * 2),
    ],
    ids=["unreachable", "slow"],
)
def test_an_engine_that_cannot_be_reached_or_is_slow_counts_as_one_that_refuses(
    trouble: Callable[[World], None],
) -> None:
    world = World()

    for _ in range(100):
        trouble(world)

    assert world.refuses()


def test_a_long_listing_is_not_a_sign_of_overload() -> None:
    world = World()

    for _ in range(100):
        world.observe(answered=1, seconds=SLOW_SECONDS * 10, expensive=True)

    assert not world.refuses()


def test_refusals_end_by_themselves_when_single_items_are_answered_again() -> None:
    world = World()
    world.observe(throttled=200)
    assert world.share() > 0.9

    world.now += HALF_LIFE_SECONDS
    world.observe(answered=300)

    assert world.share() == 0


def test_refusals_end_by_themselves_when_nothing_is_seen_for_long() -> None:
    world = World()
    world.observe(throttled=200)

    world.now += 10 * HALF_LIFE_SECONDS

    assert world.share() < 0.05


def test_a_clock_that_is_set_back_is_tolerated() -> None:
    world = World()
    world.observe(throttled=200)

    world.now -= 3600

    assert world.refuses()


@pytest.mark.parametrize(("draw", "seconds"), [(0.0, 1), (0.5, 3), (0.9, LONGEST_RETRY_SECONDS)])
def test_refused_callers_retry_at_different_times(draw: float, seconds: int) -> None:
    world = World(draw)
    world.observe(throttled=10_000)

    with pytest.raises(OverloadedError) as refused:
        world.signal.refuse_expensive()

    assert (refused.value.retry_after, refused.value.details) == (seconds, {"retry_after": seconds})
