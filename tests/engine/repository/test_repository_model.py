"""The repository against a dictionary: any sequence of operations while time passes."""

from datetime import timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from dynashard.errors import AlreadyExistsError, DynashardError, NotFoundError, RevisionMismatchError
from tests.depth import examples
from tests.engine.stored_things import Person, World, key, person

pytestmark = pytest.mark.engine

IDS = [f"{n}" for n in range(4)]
identities = st.sampled_from(IDS)
lives = st.none() | st.integers(-5, 30)
revisions = st.sampled_from(["none", "current", "wrong"])
teams = st.none() | st.sampled_from(["eng", "ops"])
ranks = st.none() | st.integers(0, 999)


class Machine(RuleBasedStateMachine):
    """`model` holds what was stored last under each id, expired or not."""

    world: ClassVar[World]

    @initialize()
    def start(self) -> None:
        for item in self.world.raw():
            self.world.dynamodb.call("DeleteItem", TableName=self.world.table, Key={"PK": item["PK"], "SK": item["SK"]})
        self.people = self.world.people
        self.model: dict[str, Person] = {}

    def live(self, identity: str) -> Person | None:
        found = self.model.get(identity)
        return None if found is None or (found.until and found.until <= self.world.clock.time()) else found

    def until(self, seconds: int | None) -> Any:
        return None if seconds is None else self.world.clock.time() + timedelta(seconds=seconds)

    def if_match(self, identity: str, which: str) -> str | None:
        current = self.live(identity)
        return {"none": None, "wrong": "rev-0", "current": current.revision if current else "rev-0"}[which]

    def expected(self, identity: str, if_match: str | None) -> type[DynashardError] | None:
        current = self.live(identity)
        if if_match is not None:
            return None if current and current.revision == if_match else RevisionMismatchError
        return None if current else NotFoundError

    @rule(seconds=st.integers(1, 10))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.at += seconds

    @rule(identity=identities, life=lives, team=teams, rank=ranks)
    def create(self, identity: str, life: int | None, team: str | None, rank: int | None) -> None:
        item = person(id=identity, until=self.until(life), team=team, rank=rank)
        if self.live(identity):
            with pytest.raises(AlreadyExistsError):
                self.people.create(item)
        else:
            self.model[identity] = self.people.create(item)
            assert self.model[identity].made == self.world.clock.time()

    @rule(identity=identities, life=lives, which=revisions, team=teams, rank=ranks, read=st.booleans())
    def put(
        self, identity: str, life: int | None, which: str, team: str | None, rank: int | None, *, read: bool
    ) -> None:
        before, if_match = self.live(identity), self.if_match(identity, which)
        fields = {"until": self.until(life), "team": team, "rank": rank}
        item = before.model_copy(update=fields) if before and read else person(id=identity, **fields)
        if if_match is not None and self.expected(identity, if_match):
            with pytest.raises(RevisionMismatchError):
                self.people.put(item, if_match=if_match)
            return
        written = self.people.put(item, if_match=if_match)
        assert written.created is (before is None)
        assert written.item.made == (before.made if before else self.world.clock.time())
        self.model[identity] = written.item

    @rule(identity=identities, which=revisions, team=teams, rank=st.integers(0, 400), life=lives)
    def set_fields(self, identity: str, which: str, team: str | None, rank: int, life: int | None) -> None:
        changes = {"team": team, "rank": rank, "until": self.until(life)}
        self.change(identity, which, changes, set=changes)

    @rule(identity=identities, which=revisions, visits=st.integers(-5, 5))
    def add_visits(self, identity: str, which: str, visits: int) -> None:
        before = self.model.get(identity)
        after = {"visits": visits + (before.visits if before else 0)}
        self.change(identity, which, after, add={"visits": visits})

    @rule(identity=identities, which=revisions, field=st.sampled_from(["team", "rank", "until"]))
    def remove_field(self, identity: str, which: str, field: str) -> None:
        self.change(identity, which, {field: None}, remove=[field])

    @rule(identity=identities, which=revisions, team=teams)
    def move_team(self, identity: str, which: str, team: str | None) -> None:
        self.change(identity, which, {"team": team}, set={"team": team})

    def change(self, identity: str, which: str, after: dict[str, Any], **changes: Any) -> None:
        if_match = self.if_match(identity, which)
        refusal = self.expected(identity, if_match)
        # An update that must read first reports a missing item as not found.
        if refusal and self.live(identity) is None:
            refusal = DynashardError
        if refusal:
            with pytest.raises(refusal):
                self.people.update(key(identity), **changes, if_match=if_match)
            return
        before = self.model[identity]
        updated = self.people.update(key(identity), **changes, if_match=if_match)
        stamps = {"changed": self.world.clock.time()}
        assert updated.model_dump() == {**before.model_dump(), **after, **stamps}
        self.model[identity] = updated

    @rule(identity=identities, which=revisions)
    def delete(self, identity: str, which: str) -> None:
        if_match = self.if_match(identity, which)
        if refusal := self.expected(identity, if_match):
            with pytest.raises(refusal):
                self.people.delete(key(identity), if_match=if_match)
            return
        self.people.delete(key(identity), if_match=if_match)
        del self.model[identity]

    @rule(puts=st.sets(identities), deletes=st.sets(identities), life=lives)
    def batch(self, puts: set[str], deletes: set[str], life: int | None) -> None:
        deletes -= puts
        self.people.batch_write(
            put=[person(id=each, until=self.until(life)) for each in sorted(puts)],
            delete=[key(each) for each in sorted(deletes)],
        )
        for each in deletes:
            self.model.pop(each, None)
        # Several copies may exist, expired or marked. The batch has put the one written last.
        written = sorted(self.world.raw(), key=lambda item: int(item.get("Rev", {"S": "rev-0"})["S"][4:]))
        stored = {item["id"]["S"]: item for item in written if "id" in item}
        for each in puts:
            self.model[each] = self.people.entity.decode(stored[each])

    @invariant()
    def everyone_sees_the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        expected = [self.live(identity) for identity in IDS]
        found = self.people.batch_get([key(identity) for identity in IDS])
        assert found == expected
        assert [item and item.revision for item in found] == [item and item.revision for item in expected]
        for identity, item in zip(IDS, expected, strict=True):
            assert self.people.find(key(identity)) == item
            assert self.people.exists(key(identity)) is (item is not None)

    @invariant()
    def items_stand_in_the_indexes_of_their_fields(self) -> None:
        if not hasattr(self, "model"):
            return
        teams = sorted((item.team, f"{item.rank:03d}") for item in self.model.values()
                       if item.team is not None and item.rank is not None)  # fmt: skip
        assert sorted((pk.split(":")[2], sk) for pk, sk in self.world.entries("GSI2")) == teams
        assert len(self.world.entries("GSI1")) == len(self.model)


def test_any_sequence_of_operations_agrees_with_a_dictionary(world: World) -> None:
    bound = type("Bound", (Machine,), {"world": world})

    run_state_machine_as_test(bound, settings=settings(max_examples=examples(12), stateful_step_count=25))
