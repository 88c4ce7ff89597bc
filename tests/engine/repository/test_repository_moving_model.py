"""The repository against a dictionary while counts change, with clients one phase behind and a mover."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from dynashard.topology import Phase, View
from tests.depth import examples
from tests.engine.repository.moving_things import Spot
from tests.engine.repository.test_repository_model import IDS, Machine, identities
from tests.engine.stored_things import Person, World

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

COUNTS = [1, 2, 4, 8, 16]


class MovingMachine(Machine):
    """Views go through the phases of consecutive changes, with a lease between two phases."""

    @initialize(count=st.sampled_from([0, *COUNTS]))
    def start_moving(self, count: int) -> None:
        self.views = [View(count)]
        self.waited = True
        self.look(behind=False)

    def look(self, *, behind: bool) -> None:
        self.world.views.now = self.views[-2] if behind and len(self.views) > 1 else self.views[-1]
        # A client that is behind reads this once it meets a marker of a later phase.
        self.world.views.fresh = self.views[-1]

    def spots(self, view: View) -> list[Spot]:
        return [Spot(self.world, view.count, view.new_count, model=Person, identity=identity) for identity in IDS]

    @property
    def phase(self) -> Phase:
        return self.views[-1].phase if hasattr(self, "views") else Phase.STABLE

    @precondition(lambda self: hasattr(self, "views") and not self.waited)
    @rule(behind=st.booleans())
    def another_client(self, *, behind: bool) -> None:
        self.look(behind=behind)

    @precondition(lambda self: hasattr(self, "views") and not self.waited)
    @rule()
    def lease_ends(self) -> None:
        self.waited = True
        self.look(behind=False)
        if self.phase is Phase.STABLE:
            self.sweep()

    @precondition(lambda self: hasattr(self, "views") and self.waited)
    @rule(count=st.sampled_from(COUNTS))
    def next_phase(self, count: int) -> None:
        view = self.views[-1]
        if view.phase is Phase.STABLE:
            if count == view.count:
                return
            after = View(view.count, Phase.PREPARE, count, markers=True)
        elif view.phase is Phase.PREPARE:
            after = View(view.count, Phase.MOVE, view.target, markers=True)
        elif view.phase is Phase.MOVE:
            for spot in self.spots(view):
                spot.move()
            after = View(view.count, Phase.SETTLE, view.target, markers=True)
        else:
            after = View(view.new_count)
        self.views.append(after)
        self.waited = False

    @precondition(lambda self: self.phase is Phase.MOVE and self.waited)
    @rule(identity=identities)
    def mover_moves(self, identity: str) -> None:
        [spot] = [spot for spot in self.spots(self.views[-1]) if spot.identity == identity]
        spot.move()

    def sweep(self) -> None:
        for item in self.world.raw():
            if "MovedTo" in item:
                Spot(self.world, 0, 0, identity=item["SK"]["S"]).clear(item["PK"]["S"])

    @invariant()
    def one_copy_is_live(self) -> None:
        now = int(self.world.clock())
        live = [
            item["id"]["S"]
            for item in self.world.raw()
            if "MovedTo" not in item and float(item.get("ExpiresAt", {"N": "inf"})["N"]) > now
        ]
        assert len(live) == len(set(live))

    @invariant()
    def items_stand_in_the_indexes_of_their_fields(self) -> None:
        # Marked and expired copies may exist, too.
        if not hasattr(self, "model"):
            return
        live = [item for item in map(self.live, IDS) if item and item.team is not None and item.rank is not None]
        found = {(pk.split(":")[2], sk) for pk, sk in self.world.entries("GSI2")}
        assert {(item.team, f"{item.rank:03d}") for item in live} <= found


def test_any_sequence_of_operations_and_phases_agrees_with_a_dictionary(world: World) -> None:
    bound = type("Bound", (MovingMachine,), {"world": world})

    run_state_machine_as_test(bound, settings=settings(max_examples=examples(8), stateful_step_count=40))
