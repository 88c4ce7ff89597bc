"""Scenarios: what traffic meets which table, as files of TOML."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from dynashard_lab.simulate.settings import Settings
from dynashard_tools.failure import CommandError
from dynashard_tools.files import file_errors

FOLDER: Final = Path(__file__).parent / "scenarios"

Points = Annotated[list[tuple[NonNegativeFloat, NonNegativeFloat]], Field(min_length=1)]
"""Seconds, each with a value."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableSpec(_Part):
    """A table or an index, all of whose units are units a second.

    Attributes:
        mode: on demand or provisioned.
        write_units: what is provisioned for writes.
        read_units: what is provisioned for reads.
        warm_write_units: what an on-demand table was warmed to, or twice what it has carried before.
        warm_read_units: the same for reads.
        most_write_units: the maximum that is set on an on-demand table.
        target: the share of provisioned write units that target tracking keeps used; none without target tracking.
        lowest_write_units: the lowest that target tracking goes to.
        highest_write_units: the highest that it goes to.
        schedule: seconds of the day, each with the write units from then on; the lowest ones with target tracking.
        partitions: how many it has at the start, if it has more than its units need.
        local_index: whether it has a local secondary index, so that item collections are not parted.
    """

    mode: Literal["on-demand", "provisioned"] = "on-demand"
    write_units: PositiveFloat = 1_000.0
    read_units: PositiveFloat = 1_000.0
    warm_write_units: NonNegativeFloat = 0.0
    warm_read_units: NonNegativeFloat = 0.0
    most_write_units: PositiveFloat | None = None
    target: float | None = Field(None, gt=0, le=1)
    lowest_write_units: PositiveFloat = 1.0
    highest_write_units: PositiveFloat = 40_000.0
    schedule: list[tuple[NonNegativeFloat, PositiveFloat]] = []
    partitions: PositiveInt = 1
    local_index: bool = False


class EntrySpec(_Part):
    """The entry that every item has in an index: its logical partition there, and that partition's shards."""

    partition: str
    shards: int = Field(0, ge=0, le=1024)


OperationKind = Literal["create", "get", "update", "put", "list"]
"""What a caller does in one operation through the layer: one item, or one page of a listing."""


class DemandSpec(_Part):
    """Traffic of one kind.

    Attributes:
        partition: the logical partition, such as `user.v1.User:abc`; the beginning of its name if there are several.
        partitions: how many logical partitions there are.
        skew: the exponent of Zipf's law by which they share the traffic; 0 shares it evenly.
        shards: the shard count of each; 0 for the unsharded layout.
        rate: requests a second, or points between which they change evenly. Requests that are throttled are lost.
        items: how many items a load writes in all; throttled ones are sent again. The run ends when all are written.
        operation: what a request does.
        consistent: whether reads are strongly consistent.
        transactional: whether requests are transactions.
        item_bytes: the size of an item.
        sort: whether sort keys rise with time, as those of `new_id()` do, or are random.
        entries: the indexes that an item is in.
        shares: through the layer, the kinds of operations and their shares of the traffic, which need not add up to 1.
            `update` changes a field and `put` the whole item, both on condition of the revision that the caller knows;
            `get`, `update` and `put` draw any item, and `list` reads the next page of a listing.
        stored: through the layer, how many items exist when the run begins.
        page: how many items a page of a listing has.
        order: in which order a listing returns them, as of `Collection.list`.
    """

    partition: str
    partitions: PositiveInt = 1
    skew: float = Field(0.0, ge=0)
    shards: int = Field(0, ge=0, le=1024)
    rate: NonNegativeFloat | Points
    items: PositiveInt | None = None
    operation: Literal["write", "read"] = "write"
    consistent: bool = False
    transactional: bool = False
    item_bytes: PositiveInt = 1_024
    sort: Literal["rising", "random"] = "rising"
    entries: dict[str, EntrySpec] = {}
    shares: dict[OperationKind, PositiveFloat] = Field({"create": 1.0}, min_length=1)
    stored: NonNegativeInt = 0
    page: int = Field(50, ge=1, le=1_000)
    order: Literal["round_robin", "ordered", "shard"] = "round_robin"

    def share_of(self, *kinds: OperationKind) -> float:
        """Return the share that some kinds of operations have of all, through the layer."""
        return sum(self.shares.get(kind, 0.0) for kind in kinds) / sum(self.shares.values())

    def rate_at(self, seconds: float) -> float:
        """Return the requests a second at a time."""
        if isinstance(self.rate, float):
            return self.rate
        before = max((point for point in self.rate if point[0] <= seconds), default=self.rate[0])
        after = min((point for point in self.rate if point[0] > seconds), default=before)
        share = (seconds - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        return before[1] + share * (after[1] - before[1])


class Resize(_Part):
    """A resize of a shard count that an operator starts.

    Attributes:
        at: when, in seconds.
        demand: whose logical partition it is.
        to: the new count.
        budget: write units a second that moving may take; none without a bound.
        share: the part of each shard's units that moving may take; that of the layer if it is left out.
    """

    at: NonNegativeFloat
    demand: str
    to: PositiveInt
    budget: PositiveFloat | None = None
    share: float | None = Field(None, gt=0, le=1)


class LayerSpec(_Part):
    """The sharding layer, which a scenario with this section runs: each request is one that the layer sends.

    Attributes:
        processes: how many processes the traffic is dealt to. Each has leases, retries and a growth policy of its own.
        request_seconds: how long a request takes.
        loaders: how many batches of 400 items a load writes at the same time.
        growth: whether counts grow by themselves.
        growth_minutes: how long a resize may be expected to take that starts by itself and moves items.
        quiet: how many seconds a count must be unchanged before it is halved; not below the cooldown of 300.
        mover_share: the part of each shard's units that moving items may take.
        placement: the placement that the entities declare; see `Shards`.
        most_shards: the ceiling of growth that they declare.
        lease: how long a view of the shard counts may be used.
        operation: the longest operation that resizes wait for.
        clocks_off: by how many seconds the wall clocks of processes are off at most. They are off evenly, from the
            most behind to the most ahead; the worker's is the most ahead.
        resizes: those that an operator starts.
        read_back: whether all acknowledged items are read after the run.
    """

    processes: PositiveInt = 10
    request_seconds: NonNegativeFloat = 0.0
    loaders: PositiveInt = 8
    growth: Literal["on", "off"] = "off"
    growth_minutes: PositiveFloat = 10.0
    quiet: float = Field(86_400.0, ge=300)
    mover_share: float = Field(0.2, gt=0, le=1)
    placement: Literal["calculated", "random", "epochs"] = "calculated"
    most_shards: PositiveInt = 1024
    lease: PositiveFloat = 30.0
    operation: PositiveFloat = 30.0
    clocks_off: NonNegativeFloat = 0.0
    resizes: list[Resize] = []
    read_back: bool = True


class GrowingSpec(_Part):
    """Many tenants over a long time, whose counts grow by the policy's decisions: see `dynashard_lab.simulate.growing`.

    The first demand has their number, their skew, their first count and the rate of all of them.

    Attributes:
        grows: whether counts grow.
        hottest: how many tenants have shards of their own; the others share 256 stored partition keys.
        daily: by which part of the mean the rate rises and falls in a day.
        most_shards: the ceiling of a count.
        placement: the placement of their items, which decides whether a resize moves them.
        growth_minutes: how long a resize may be expected to take that starts by itself and moves items; `inf` if an
            operator starts longer ones at once.
        mover_share: the part of each shard's units that moving items may take.
    """

    grows: bool = True
    hottest: PositiveInt = 300
    daily: float = Field(0.4, ge=0, lt=1)
    most_shards: PositiveInt = 1024
    placement: Literal["calculated", "random", "epochs"] = "calculated"
    growth_minutes: PositiveFloat = 10.0
    mover_share: float = Field(0.2, gt=0, le=1)


class Scenario(_Part):
    """A question, and all that is needed to answer it by a run.

    Attributes:
        title: the name that a picture has.
        question: what the scenario shows.
        seconds: the length of a run in virtual time.
        tick: the seconds of traffic that are decided about at a time.
        rehearsal_seconds: for how long the same traffic has met the table before the run, so that partitions are split.
        settings: the assumptions.
        table: the table.
        indexes: its indexes, by name.
        demands: the traffic, by name.
        layer: runs the sharding layer; without it, requests are single reads and writes of the model alone.
        growing: lets many tenants grow; not together with a layer.
    """

    title: str
    question: str
    seconds: PositiveFloat
    tick: PositiveFloat = 1.0
    rehearsal_seconds: NonNegativeFloat = 0.0
    settings: Settings = Settings()
    table: TableSpec = TableSpec()
    indexes: dict[str, TableSpec] = {}
    demands: dict[str, DemandSpec] = Field(min_length=1)
    layer: LayerSpec | None = None
    growing: GrowingSpec | None = None


def names() -> list[str]:
    """Return the names of the scenarios that come with the project."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str, changes: Iterable[str] = ()) -> dict[str, Scenario]:
    """Return a scenario's variants by their names, a single one without a name if it has none.

    Args:
        name: of a scenario, or the path of a file.
        changes: values to change in every variant, such as `settings.burst_seconds=600`. They win over the variant's.

    Raises:
        CommandError: there is no such scenario, or a value does not fit.
    """
    document = _document(name)
    variants: Mapping[str, Mapping[str, Any]] = document.pop("variants", {}) or {"": {}}
    asked = dict(_parsed(change) for change in changes)
    result = {}
    for variant, values in variants.items():
        changed = deepcopy(document)
        for path, value in {**values, **asked}.items():
            _set(changed, path, value)
        result[variant] = _validated(name, variant, changed)
    return result


def chosen(variants: Mapping[str, Scenario], names: Sequence[str]) -> dict[str, Scenario]:
    """Return the variants with some names, all if none is named; raises `CommandError` for a name that there is not."""
    unknown = [name for name in names if name not in variants]
    if unknown:
        raise CommandError(f"there is no variant {unknown[0]}; name one of {', '.join(map(repr, variants))}")
    return {name: scenario for name, scenario in variants.items() if not names or name in names}


def _document(name: str) -> dict[str, Any]:
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if path.parent == FOLDER and not path.is_file():
        raise CommandError(f"there is no scenario {name}; name a file, or one of {', '.join(names())}")
    with file_errors(path, "read"):
        text = path.read_text("utf-8")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"{path} is not TOML: {error}") from error


def _parsed(change: str) -> tuple[str, Any]:
    path, equals, text = change.partition("=")
    if not path or not equals:
        raise CommandError(f"{change!r} changes nothing; write PATH=VALUE, such as settings.burst_seconds=600")
    try:
        return path, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return path, text


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    at = document
    for parent in parents:
        at = at.setdefault(parent, {})
        if not isinstance(at, dict):
            raise CommandError(f"{path} cannot be set: {parent} is a value")
    at[last] = value


def _validated(name: str, variant: str, document: dict[str, Any]) -> Scenario:
    unknown = document.get("settings", {}).keys() - Settings.__dataclass_fields__.keys()
    if unknown:
        raise CommandError(f"{name}: there is no setting {', '.join(sorted(unknown))}; see docs/simulating.md")
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise CommandError(f"{name}{variant and f', {variant}'}: {faults}") from error
    missing = {index for each in scenario.demands.values() for index in each.entries} - scenario.indexes.keys()
    if missing:
        raise CommandError(f"{name}: there is no index {', '.join(sorted(missing))}; declare it under indexes")
    for demand, spec in scenario.demands.items():
        _check_operations(f"{name}: {demand}", spec, layered=scenario.layer is not None)
    return scenario


_OF_THE_LAYER: Final = frozenset({"shares", "stored", "page", "order"})


def _check_operations(name: str, demand: DemandSpec, *, layered: bool) -> None:
    """Refuse operations that no item exists for, or that only a run of the layer knows."""
    asked = ", ".join(sorted(demand.model_fields_set & _OF_THE_LAYER))
    if asked and not layered:
        raise CommandError(f"{name}: only a scenario with a section layer has {asked}")
    if demand.items is not None and demand.shares.keys() != {"create"}:
        raise CommandError(f"{name}: a load creates items; leave shares or items out")
    if not demand.stored and not {"get", "update", "put"}.isdisjoint(demand.shares):
        raise CommandError(f"{name}: stored is 0; gets, updates and puts need items that exist when the run begins")
