"""The growth policy under random throttles of several processes."""

from itertools import pairwise

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dynashard import Shards, definition
from dynashard.errors import (
    ThrottledError,
)
from dynashard.growth.terms import CountState
from dynashard.resharding.scope import Scope
from tests.declaring import declare
from tests.depth import examples
from tests.unit.serving.growth_policy_world import HOT, HOT_INDEX, INDEXES, NO_REASON, World, throttle

pytestmark = pytest.mark.unit


class Throttling(RuleBasedStateMachine):
    """Several processes with overlapping waits under random throttles. One of them does not wait."""

    SHARDS = Shards(2, max=32)
    COOLDOWN = 300.0

    @initialize(modes=st.lists(st.sampled_from(["on", "on", "dry_run", "off"]), min_size=3, max_size=3))
    def begin(self, modes: list[str]) -> None:
        self.world = World()
        self.modes = modes
        self.thing = definition(declare(shards=self.SHARDS, indexes=INDEXES))
        self.draws = 0
        self.resizes: list[tuple[float, str, int]] = []
        self.world.ask = self.ask  # type: ignore[method-assign]
        self.processes = [
            self.world.process(mode=mode, waits=at != 2, random=0.3 * at) for at, mode in enumerate(modes)
        ]
        self.active = [at for at, mode in enumerate(modes) if mode == "on"]
        self.caller = 0

    def ask(self, scope: Scope, target: int, creating: float) -> object:
        assert self.modes[self.caller] == "on"
        World.ask(self.world, scope, target, creating)
        self.resizes.append((self.world.now, scope.key, target))
        return None

    @rule(
        process=st.integers(0, 2),
        other=st.integers(0, 2),
        tenant=st.sampled_from("ab"),
        error=st.sampled_from([HOT, HOT, HOT_INDEX, NO_REASON, throttle("TableWriteAccountLimitExceeded")]),
    )
    def throttle_one(self, process: int, other: int, tenant: str, error: ThrottledError) -> None:
        def meanwhile() -> None:
            self.world.meanwhile = lambda: None
            self.caller = other
            self.processes[other].throttled(self.thing, f"thing.v1.Thing:{tenant}", error)
            self.caller = process

        self.world.meanwhile = meanwhile
        self.caller = process
        self.processes[process].throttled(self.thing, f"thing.v1.Thing:{tenant}", error)
        self.world.meanwhile = lambda: None

    @rule(seconds=st.sampled_from([0.5, 3.0, 9.0, 120.0, 299.0, 301.0, 4000.0]))
    def pass_time(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(tenant=st.sampled_from("ab"))
    def another_program_changes_the_count(self, tenant: str) -> None:
        key = f"thing.v1.Thing:{tenant}"
        if key in self.world.counts:
            state = self.world.counts[key]
            self.world.counts[key] = CountState(max(2, state.count // 2), self.world.now, busy=False)

    @invariant()
    def counts_only_double_up_to_their_ceiling(self) -> None:
        for key, state in getattr(self, "world", World()).counts.items():
            assert state.count in {2, 4, 8, 16, 32}
            assert state.count <= (16 if "|" in key else 32)

    @invariant()
    def a_cooldown_lies_between_two_changes(self) -> None:
        for key in {key for _, key, _ in getattr(self, "changes", [])}:
            times = [at for at, changed, _ in self.resizes if changed == key]
            assert all(later - earlier >= self.COOLDOWN for earlier, later in pairwise(times))


Throttling.TestCase.settings = hypothesis_settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestThrottling = Throttling.TestCase
