"""When shard counts grow by themselves: after a key range was throttled. `shrinking` halves them again.

The policy receives throttles, reads counts and requests resizes through its collaborators.
Source of cooldown, random wait and history: AWS, 'Choosing the right number of shards'.
"""

from collections.abc import Callable
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import (
    DynashardError,
    ReshardRefusedError,
    TableThrottledError,
    ThrottledError,
    ThrottleKind,
    TopologyChangedError,
)
from dynashard.growth.cooldowns import Cooldowns
from dynashard.growth.demand import Demand, Place
from dynashard.growth.evidence import Evidence, creating_share, evidence_of
from dynashard.growth.requester import Requester
from dynashard.growth.retries import RetriedThrottleError
from dynashard.growth.settings import GrowthSettings, Load, LoadSource
from dynashard.growth.sizing import enough, target_count
from dynashard.growth.supply import Supply, hot_places
from dynashard.growth.terms import (
    CountState,
    GrowthEvent,
    ReadCount,
    Report,
    RequestCount,
    WithdrawCount,
    arguments_of,
)
from dynashard.placement import UNSHARDED
from dynashard.resharding.scope import Scope
from dynashard.runtime import Runtime
from dynashard.transport.interface import WRITING

_LOAD_VALID_SECONDS: Final = 60.0
"""How long an answer of CloudWatch, or a description of the table, is used."""
_RECHECK_SECONDS: Final = 60.0
"""How long a count is left alone that changes, has changed, or is large enough. No cooldown is shorter than this: the
requests that are counted by then were all sent under the new count."""
DECLINED_SECONDS: Final = 3600.0
"""How long it is believed that a resize would take too long, because few items leave a partition meanwhile."""
_CLEAR_EXCESS: Final = 2.0
"""Demand relative to what a new count can take, from which on the rest of its cooldown is not waited for."""


class Growth:
    """The growth policy of one process. Safe to share between threads.

    Args:
        request: requests a resize.
        read: reads a count.
        runtime: time and randomness.
        settings: how it behaves.
        waits: wait in the calling thread. Otherwise no request ever waits: the first throttle begins the random wait,
            and the first throttle after the wait requests the resize. A key range that is not throttled again needs
            no more shards.
        withdraw: takes back a resize that waits for empty shards.
        load: reports what the table can give, and whether it is below its limits; None if that is unknown.
        demand: what this process asked for and got. A count is doubled without it.
        report: receives events, at most once in a cooldown for one cause.
    """

    def __init__(
        self,
        request: RequestCount,
        read: ReadCount,
        *,
        runtime: Runtime,
        settings: GrowthSettings,
        waits: bool = False,
        withdraw: WithdrawCount = lambda _: None,
        load: LoadSource | None = None,
        demand: Demand | None = None,
        report: Callable[[Report], None] = lambda _: None,
    ) -> None:
        self._requester = Requester(request, settings.mode, report)
        self._read = read
        self._runtime = runtime
        self._settings = settings
        self._waits = waits
        self._withdraw = withdraw
        self._load = load
        self._report = report
        self._demand = demand
        self._loads: dict[bool, Load] = {}
        self._limits: dict[Place, float | None] = {}
        self._cooldowns = Cooldowns(settings, runtime)

    def throttled(self, entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        """Request a larger count if more shards can cure a throttle. Never raises.

        Cost: at most once a minute for a partition or index, a description of the table and a read of the record; once
            in a cooldown a conditional update; before them a question about the load if the throttle has no reason.
            Otherwise none.
        """
        if self._settings.mode == "off":
            return
        for reason in error.reasons:
            if reason.kind not in (ThrottleKind.KEY_RANGE, ThrottleKind.UNKNOWN):
                limit = f"{reason.reason}: {reason.remedy}"
                self._report_once(GrowthEvent.LIMIT, entity, reason.index, limit, cause=reason.reason)
        if any(reason.kind is ThrottleKind.KEY_RANGE for reason in error.reasons):
            lasting = not isinstance(error, RetriedThrottleError)
            for place in hot_places(error):
                self._grow(entity, partition, place, lasting=lasting)
        elif isinstance(error, TableThrottledError):
            if not error.reasons:
                self._report_once(GrowthEvent.LIMIT, entity, None, str(error))
        else:
            self._without_reason(entity, partition, error)

    def _without_reason(self, entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        """Decide about a throttle without a known reason by how busy the table is."""
        if self._load is None or error.index_blamed or partition is None:
            self._report_once(GrowthEvent.UNKNOWN, entity, None, str(error))
            return
        load = self._load_now(self._load, writing=error.operation in WRITING)
        if load is None:
            return
        if load.below:
            self._grow(entity, partition, Place(None, error.operation in WRITING), lasting=True)
            return
        event = GrowthEvent.UNKNOWN if load.below is None else GrowthEvent.LIMIT
        self._report_once(event, entity, None, f"{error} {load.reason}.")

    def _load_now(self, source: LoadSource, *, writing: bool) -> Load | None:
        """The load of the table in this minute; None while another thread asks for it."""
        if self._cooldowns.claim(f"load {writing}", _LOAD_VALID_SECONDS):
            self._loads.pop(writing, None)
            self._loads[writing] = source(writing=writing)
        return self._loads.get(writing)

    def _grow(self, entity: EntityDefinition[Any], partition: str | None, place: Place, *, lasting: bool) -> None:
        """Raise a count, if no other thread does, the demand needs it and the declaration allows it."""
        scope = self._hot_scope(entity, partition, place)
        if scope is None:
            return
        if self._demand is not None and lasting:
            self._demand.throttled(place, scope.key)
        self._keep_shards(scope)
        if not self._waits and self._cooldowns.waits(scope.key):
            return
        if not self._cooldowns.claim(scope.key, self._settings.cooldown_seconds):
            return
        evidence = self._evidence(scope, place)
        if evidence is not None and self._too_early(evidence):
            # Of many processes the first would decide, which has seen the least.
            self._cooldowns.wait_again(scope.key)
            return
        supply = Supply(self._limit(place), place)
        if evidence is not None and supply.bystander(evidence):
            self._recheck(scope.key)
            if supply.spread(evidence):
                reason = f"throttles are spread over all key ranges, {scope.key} is one of many: {supply.remedy}"
                self._report_once(GrowthEvent.LIMIT, entity, place.slot, reason, cause="spread")
            else:
                part = f"{evidence.requests:,} of {evidence.all_requests:,} requests"
                reason = f"{scope.key} was throttled, but has {part}: too few to be what is hot"
                # A hot key has many neighbours.
                self._report_once(GrowthEvent.KEPT, entity, place.slot, reason)
            return
        try:
            self._enlarge(scope, place, supply)
        except DynashardError as error:
            # Nothing was decided, so it is not left alone for as long as after a resize.
            self._recheck(scope.key)
            self._requester.report(
                GrowthEvent.FAILED, scope, f"{scope.key} is hot, but its count is unreadable: {error}"
            )
        except BaseException:
            # The caller was cancelled, so nothing may have been decided here either.
            self._recheck(scope.key)
            raise

    def _keep_shards(self, scope: Scope) -> None:
        """Take back a resize that waits until shards are empty, at the first throttle: they are needed."""
        # Only random placement waits for empty shards.
        if scope.moves or self._settings.mode != "on":
            return
        if not self._cooldowns.claim(f"narrowing {scope.key}", min(self._settings.cooldown_seconds, _RECHECK_SECONDS)):
            return
        try:
            state = self._read(scope)
            if not state.narrowing:
                return
            self._withdraw(scope)
        except (ReshardRefusedError, TopologyChangedError):
            return
        except DynashardError as error:
            reason = f"{scope.key} is hot, and waits to be narrowed, which could not be taken back: {error}"
            self._requester.report(GrowthEvent.FAILED, scope, reason)
            return
        reason = f"{scope.key} is hot: it keeps its {state.count} shards, {state.target} of which it was to keep"
        self._requester.report(GrowthEvent.WITHDRAWN, scope, reason)

    def _hot_scope(self, entity: EntityDefinition[Any], partition: str | None, place: Place) -> Scope | None:
        """Return what a hot place belongs to; None, with a report, if that is unknown."""
        slot = place.slot
        if slot is None and partition is not None:
            return Scope(entity, partition)
        index = next((each for each in entity.indexes.values() if each.slot == slot), None)
        if index is not None:
            return Scope(entity, None, index)
        reason = f"a key range of {entity.name} is hot, but it is unknown which"
        if slot is not None:
            reason = f"a key range of index {slot or '(unnamed)'} is hot, which {entity.name} does not declare"
        self._report_once(GrowthEvent.UNKNOWN, entity, slot or None, reason)
        return None

    def _enlarge(self, scope: Scope, place: Place, supply: Supply) -> None:
        """Request a count for the demand, unless the record, its cooldown or the supply is against it."""
        state = self._resizable(scope)
        if state is not None and self._declined(scope, state):
            return
        if state is None or self._still_cooling(scope, state, self._evidence(scope, place, state.count)):
            return
        if self._waits and self._settings.mode == "on":
            self._runtime.sleep(self._cooldowns.drawn_wait())
            # Others may have decided during the wait, on more requests: theirs must take effect before the next.
            if self._read(scope) != state:
                self._requester.report(GrowthEvent.LOST, scope, f"another process has changed the count of {scope.key}")
                return
        evidence = self._evidence(scope, place, state.count)
        if evidence is not None and enough(evidence):
            self._recheck(scope.key)
            part = f"{evidence.throttled + evidence.retried:,} of {evidence.requests:,} requests"
            self._kept(scope, "enough", f"its count of {state.count} takes what is asked: {part} were throttled")
            return
        if state.count >= supply.most_shards:
            reason = f"{scope.key} is hot, but a count of {state.count} can use all that there is: {supply.remedy}"
            self._requester.report(GrowthEvent.LIMIT, scope, reason)
            return
        target, why = max(1, state.count) * 2, "a key range is hot"
        if evidence is not None:
            self._recheck(scope.key)
            ceiling = scope.shards.max if scope.shards else target
            moves = scope.moves and scope.time is None
            target = target_count(evidence, ceiling=min(ceiling, supply.most_shards), moves=moves)
            why += f", {evidence.throttled:,} of {evidence.requests:,} requests were throttled"
            why += f", and {evidence.retried:,} executed after retries" if evidence.retried else ""
        self._requester.resize(scope, target, why, creating_share(evidence, place))

    def _declined(self, scope: Scope, state: CountState) -> bool:
        """Whether a resize would take too long, as the worker has found not long ago; reports it."""
        if state.declined is None or state.busy or self._runtime.clock() >= state.changed + DECLINED_SECONDS:
            return False
        environment = f" --env {self._settings.environment}" if self._settings.environment else ""
        reason = (
            f"{scope.key} is hot, and {state.target} shards were needed; but {state.declined}. "
            f"An operator decides: `dynashard reshard start {arguments_of(scope)} --to {state.target}{environment}`"
        )
        self._requester.report(GrowthEvent.TOO_LONG, scope, reason, state.target)
        return True

    def _resizable(self, scope: Scope) -> CountState | None:
        """Return the count of a scope; None, with a report, if the declaration does not allow a larger one."""
        shards = scope.shards
        if shards is None or not shards.rule.powers_of_two:
            remedy = f"{shards.placement} counts never change" if shards else "declare shards"
            self._requester.report(GrowthEvent.CANNOT, scope, f"{scope.key} is hot: {remedy}")
            return None
        state = self._read(scope)
        if (state.count == UNSHARDED and scope.time is None) or state.count * 2 > shards.max:
            remedy = f"it has {state.count} shards, its ceiling is {shards.max}: declare a higher max"
            if state.count == UNSHARDED:
                remedy = f"it is unsharded still: start its reshard to {shards.count}"
            self._requester.report(GrowthEvent.CANNOT, scope, f"{scope.key} is hot: {remedy}")
            return None
        return state

    def _evidence(self, scope: Scope, place: Place, count: int | None = None) -> Evidence | None:
        """Return what this process saw of a scope; None if nothing counts its requests."""
        return None if self._demand is None else evidence_of(self._demand, scope, place, count)

    def _limit(self, place: Place) -> float | None:
        """Return what the table or index can give, described at most once a minute; None if that is unknown."""
        if self._load is not None and self._cooldowns.claim(f"limit {place}", _LOAD_VALID_SECONDS):
            self._limits[place] = self._load.limit(index=place.slot, writing=place.writing)
        return self._limits.get(place)

    def _still_cooling(self, scope: Scope, state: CountState, evidence: Evidence | None) -> bool:
        """Whether the count changes now, or has changed so recently that its effect is not visible yet."""
        now = self._runtime.clock()
        # Other clocks may be ahead of this one.
        since = min(now, state.changed)
        clear = evidence is not None and evidence.proven_excess >= _CLEAR_EXCESS
        cooldown = self._settings.cooldown_seconds
        over = since + (min(cooldown, _RECHECK_SECONDS) if clear else cooldown)
        if not state.busy and now >= over:
            return False
        if evidence is not None:
            self._recheck(scope.key)
        elif not state.busy:
            self._cooldowns.begin(scope.key, over)
        count, ago = state.count, f"{now - since:.0f} s ago"
        if state.busy:
            self._kept(scope, "busy", f"its count of {count} is changing to {state.target} already")
        else:
            self._kept(scope, "cooldown", f"its count of {count} changed, or its resize was called off, {ago}")
        return True

    def _kept(self, scope: Scope, cause: str, reason: str) -> None:
        """Report once in a cooldown why a count stays for now."""
        if self._cooldowns.claim(f"kept {scope.key} {cause}", self._settings.cooldown_seconds):
            self._requester.report(GrowthEvent.KEPT, scope, f"{scope.key} was throttled, but {reason}")

    def _recheck(self, key: str) -> None:
        """Let this process decide again in a minute. The cooldown in the record is not affected."""
        if self._settings.mode != "on":
            return
        seconds = min(self._settings.cooldown_seconds, _RECHECK_SECONDS)
        self._cooldowns.begin(key, self._runtime.clock() + seconds)

    def _too_early(self, evidence: Evidence) -> bool:
        """Whether a decision waits for more requests: half of the longest random wait, all of it for few requests.

        A throttled request is sent again for some seconds before it counts, so the first seconds show too little.
        """
        if self._waits or self._demand is None:
            return False
        enough = self._settings.wait_high / 2 if evidence.conclusive else self._settings.wait_high
        return 0 <= self._demand.seconds() < enough

    def _report_once(
        self, event: GrowthEvent, entity: EntityDefinition[Any], index: str | None, reason: str, *, cause: str = ""
    ) -> None:
        if self._cooldowns.claim(f"{event} {entity.name} {index} {cause}", self._settings.cooldown_seconds):
            self._report(Report(event, entity.name, None, index, reason))
