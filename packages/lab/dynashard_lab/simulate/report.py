"""The figures of a scenario's runs, as text."""

from collections.abc import Iterator, Mapping

from dynashard.resharding.estimate import lasting
from dynashard_lab.simulate.run import GrowingResult, LayerResult, Result
from dynashard_lab.simulate.scenario import Scenario

_HEADINGS = ("", "admitted/s", "settled/s", "throttled", "partitions", "splits", "seconds", "$/month")


def lines(scenario: Scenario, results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the question, a table with a row for each variant, and what was throttled."""
    yield scenario.title
    yield scenario.question
    yield ""
    rows = [_HEADINGS, *(_row(name, result) for name, result in results.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row in rows:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join([row[0].ljust(len(first)), *others]).rstrip()
    for name, result in results.items():
        title = name or scenario.title
        for reason, count in result.reasons.items():
            yield f"{title}: {count:,} requests throttled with {reason}"
        if not result.finished:
            yield f"{title}: not all items were written in {result.seconds:,.0f} seconds"
        if result.layer is not None:
            yield from (f"{title}: {line}" for line in _layer_lines(result, result.layer))
        if result.growing is not None:
            yield from (f"{title}: {line}" for line in _growing_lines(result.growing))


def _layer_lines(result: Result, layer: LayerResult) -> Iterator[str]:
    yield f"{layer.requests:,} requests for {result.asked:,} operations, in {layer.real_seconds:,.1f} s of CPU"
    if len(layer.operations) > 1:
        for kind, counts in layer.operations.items():
            yield f"{counts.asked:,} x {kind}, {counts.throttled / counts.asked:.1%} of them throttled"
    for error, count in layer.failed.items():
        yield f"{count:,} operations failed with {error}"
    if layer.lost is not None:
        yield (
            f"{layer.acknowledged:,} items were acknowledged; {layer.lost:,} are lost, {layer.doubled:,} listed twice, "
            f"{layer.stale:,} without their last update"
        )
    yield from _growth_lines(layer)


def _growth_lines(layer: LayerResult) -> Iterator[str]:
    for at, event in layer.growth:
        yield f"{at:,.0f} s: growth {event}"
    for at, phase in layer.phases[1:]:
        yield f"{at:,.0f} s: {phase}"
    if layer.growth_units:
        yield (
            f"resizes moved {layer.moved:,} items and took {layer.growth_units:,.0f} units; after the first throttle, "
            f"processes read the topology with {layer.topology_read_units:,.0f} units"
        )
    if layer.adapted_seconds is None:
        yield "a tenth of operations or more was throttled until the end"
    elif layer.adapted_seconds:
        yield f"less than a tenth of operations was throttled after {layer.adapted_seconds:,.0f} s"


def _growing_lines(growing: GrowingResult) -> Iterator[str]:
    sharded = sum(growing.counts.values())
    counts = ", ".join(f"{tenants} with {count}" for count, tenants in growing.counts.items())
    if sharded:
        yield f"{sharded} of {growing.tenants:,} tenants have more than 1 shard: {counts}"
    else:
        yield f"all of {growing.tenants:,} tenants have 1 shard"
    if growing.declined:
        yield f"{growing.declined} tenants had a resize declined, because it would have taken too long"
    if growing.resizes:
        yield (
            f"{growing.resizes} resizes moved {growing.moved:,} items for ${growing.dollars:,.0f}, the longest one in "
            f"{lasting(growing.longest_seconds)}"
        )


def _row(name: str, result: Result) -> tuple[str, ...]:
    share = result.throttled / result.asked if result.asked else 0.0
    return (
        name,
        f"{result.admitted_rate:,.0f}",
        f"{result.settled_rate:,.0f}",
        f"{share:.1%}",
        f"{result.partitions:,}",
        f"{result.heat_splits + result.size_splits:,}",
        f"{result.seconds:,.0f}",
        f"{result.dollars_a_month:,.0f}",
    )
