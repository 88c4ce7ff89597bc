"""`dynashard plan`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal

import typer

from dynashard import definition
from dynashard.entity import EntityDefinition
from tools.entities import exposed
from tools.failure import CommandError, file_errors
from tools.load.rows import Lines, rows
from tools.options import AnyEntity, AsJson
from tools.plan.advice import advice
from tools.plan.declared import Sample, declared_count, estimated_bytes, index_loads, rises, sample_of
from tools.plan.key_counts import MAX_KEY_BYTES, key_counts
from tools.plan.picture import draw
from tools.plan.planner import Plan, make_plan
from tools.plan.prices import REFERENCE, Prices, prices_of
from tools.plan.render import lines
from tools.plan.skew import MAX_PARTITIONS, Skew, even, measured, one_hot, zipf
from tools.plan.units import Consistency
from tools.plan.workload import Workload
from tools.plot.figure import picture_format

PRICES: Final = Path(__file__).with_name("prices.json")
_MAX_EXPONENT: Final = 10
_MAX_PRICE_FILE: Final = 1024 * 1024
_LINE_BYTES: Final = MAX_KEY_BYTES + 64

HELP: Final = """Plan shards, capacity and cost: `dynashard plan users --writes 5000 --partitions 200 --zipf 1`.

Rates are per second at the peak, for all logical partitions of the entity together. Without ENTITY, give --item-bytes. It reads no table and changes nothing. docs/planning.md describes the arithmetic and its limits.
"""  # noqa: E501 - the terminal's width breaks the lines


def plan(
    entity: AnyEntity = None,
    *,
    item_bytes: Annotated[int | None, typer.Option(help="Stored bytes of an item, with names and keys.")] = None,
    items: Annotated[
        Path | None, typer.Option(help="CSV or JSON Lines of items: measures size, skew, indexes.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant of the rows of --items.")] = None,
    writes: Annotated[float, typer.Option(help="Writes of items a second.")] = 0,
    reads: Annotated[float, typer.Option(help="Reads of single items a second.")] = 0,
    lists: Annotated[float, typer.Option(help="Pages of listings a second.")] = 0,
    page: Annotated[int, typer.Option(help="Items a page.")] = 50,
    order: Annotated[Literal["round_robin", "ordered", "shard"], typer.Option(help="Listing order.")] = "round_robin",
    consistency: Annotated[Literal["eventual", "strong", "transactional"], typer.Option(help="Reads.")] = "eventual",
    transactional: Annotated[float, typer.Option(help="Part of the writes that are in transactions, 0 to 1.")] = 0,
    partitions: Annotated[int | None, typer.Option(help="Logical partitions with traffic; 1 if left out.")] = None,
    hottest: Annotated[float | None, typer.Option(help="Share of the hottest partition, 0 to 1.")] = None,
    zipf_exponent: Annotated[float | None, typer.Option("--zipf", help="Zipf exponent of the shares.")] = None,
    keys: Annotated[Path | None, typer.Option(help="File of partitions, one a line: measures the shares.")] = None,
    index: Annotated[list[str] | None, typer.Option(help="NAME=SHARE of an index's hottest partition.")] = None,
    stored: Annotated[int, typer.Option(help="Items in the table.")] = 0,
    load: Annotated[int, typer.Option(help="Items to load once into one partition.")] = 0,
    growth: Annotated[float, typer.Option(help="Percent a month.")] = 0,
    months: Annotated[int, typer.Option(help="Months to look ahead.")] = 12,
    placement: Annotated[str | None, typer.Option(help="calculated, modulo or random.")] = None,
    shards: Annotated[int | None, typer.Option(help="Plan with this count, not the smallest that suffices.")] = None,
    sort_keys: Annotated[
        Literal["rising", "spread"] | None, typer.Option(help="Whether sort keys rise with time.")
    ] = None,
    fill: Annotated[float, typer.Option(help="Part of a partition's limits that a shard may use.")] = 0.7,
    mean: Annotated[float, typer.Option(help="Mean load as a part of the peak.")] = 0.5,
    utilization: Annotated[float, typer.Option(help="Target utilisation of provisioned capacity.")] = 0.7,
    region: Annotated[str, typer.Option(help="Region of the prices.")] = REFERENCE,
    prices: Annotated[Path | None, typer.Option(help="JSON file of prices instead of the included one.")] = None,
    price: Annotated[list[str] | None, typer.Option(help="NAME=DOLLARS: one price, instead of the file's.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the plan into this file, .png or .svg.")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan shards, capacity and cost; `HELP` says more."""
    if plot is not None:
        picture_format(plot)
    found = None if entity is None else definition(exposed(entity).entity)
    with _wrong_values():
        sample = _sample(found, items, tenant)
        size, size_source = _size(found, item_bytes, sample)
        skew = _skew(partitions, hottest, zipf_exponent, keys, sample)
        shares = _numbers(index or [], "--index", "by_email=0.2")
        if shares and found is None:
            raise CommandError("--index needs ENTITY, which declares the indexes")
        workload = Workload(
            item_bytes=size, skew=skew, writes=writes, reads=reads, lists=lists, page=page, order=order,
            consistency=Consistency(consistency), transactional=transactional, stored=stored, load=load,
            growth=growth, months=months, fill=fill, mean=mean, utilization=utilization,
            placement=placement or (found.rule.name if found else "calculated"),
            rising=sort_keys == "rising" if sort_keys else found is None or rises(found, found.sort),
            declared=None if found is None else declared_count(found),
            shards=shards,
            name="" if found is None else found.name,
            indexes=() if found is None else index_loads(found, skew.hottest, sample, shares),
        )  # fmt: skip
        made = make_plan(workload, _prices(prices, region, price or []))
    _show(made, size_source, plot, as_json=as_json)


@contextmanager
def _wrong_values() -> Iterator[None]:
    """End the command with one line if a value is wrong."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error)) from error


def _show(made: Plan, size_source: str, plot: Path | None, *, as_json: bool) -> None:
    if plot is not None:
        title = f"{made.workload.name or 'plan'}: {made.shards.count} shards, {made.workload.writes:,g} writes/s"
        draw(plot, title, made)
    if as_json:
        typer.echo(json.dumps({**made.as_dict(), "item_size": size_source, "advice": advice(made)}))
        return
    for line in lines(made, size_source):
        typer.echo(line)


def _sample(found: EntityDefinition[Any] | None, path: Path | None, tenant: str | None) -> Sample | None:
    if path is None:
        return None
    if found is None:
        raise CommandError("--items needs ENTITY, whose items the file has")
    formats = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    if path.suffix not in formats:
        raise CommandError(f"{path} must end in .csv, .jsonl or .ndjson")
    columns = frozenset(found.model.model_fields) - found.server_fields
    with _opened(path) as stream, _prefixed(path):
        return sample_of(found, rows(Lines(stream), formats[path.suffix], columns), tenant)


def _size(found: EntityDefinition[Any] | None, given: int | None, sample: Sample | None) -> tuple[int, str]:
    if given is not None:
        return given, "given"
    if sample is not None:
        return sample.item_bytes, f"the mean of {sample.items:,} items"
    if found is not None:
        return estimated_bytes(found), "estimated from the declaration: --item-bytes or --items is better"
    raise CommandError("the item size is missing: give --item-bytes, or ENTITY")


def _skew(
    partitions: int | None, hottest: float | None, exponent: float | None, keys: Path | None, sample: Sample | None
) -> Skew:
    given = [
        name for name, value in (("--hottest", hottest), ("--zipf", exponent), ("--keys", keys)) if value is not None
    ]
    if len(given) > 1:
        raise CommandError(f"{' and '.join(given)} contradict each other: give one of them")
    if keys is not None:
        if partitions is not None:
            raise CommandError("--keys counts the partitions: leave --partitions out")
        with _opened(keys) as stream, _prefixed(keys):
            return measured(key_counts(iter(lambda: stream.readline(_LINE_BYTES), b"")), f"measured in {keys.name}")
    if sample is not None and partitions is None and not given:
        return measured(sample.partitions, "measured in the items")
    number = 1 if partitions is None else partitions
    if not 1 <= number <= MAX_PARTITIONS:
        raise CommandError(f"partitions is {number:,}; it must be between 1 and {MAX_PARTITIONS:,}")
    if hottest is not None:
        return one_hot(number, hottest)
    if exponent is None:
        return even(number)
    if not 0 <= exponent <= _MAX_EXPONENT:
        raise CommandError(f"zipf is {exponent:g}; it must be between 0 and {_MAX_EXPONENT}")
    return zipf(number, exponent)


def _numbers(pairs: Sequence[str], option: str, example: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            found[name] = float(text)
        except ValueError:
            raise CommandError(f"{option} {pair!r} is not NAME=NUMBER, such as {example}") from None
    return found


def _prices(path: Path | None, region: str, overrides: Sequence[str]) -> Prices:
    source = path or PRICES
    single = _numbers(overrides, "--price", "read_unit_hour=0.00013")
    with _opened(source) as stream, _prefixed(source):
        text = stream.read(_MAX_PRICE_FILE + 1)
        if len(text) > _MAX_PRICE_FILE:
            raise ValueError("larger than 1 MB; is this the right file?")
        document = _json_object(text)
    return prices_of(document, region, single)


def _json_object(text: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - wrong input, not a wrong call
    return document


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with file_errors(path, "read"):
        stream = path.open("rb")
    with stream, file_errors(path, "read"):
        yield stream


@contextmanager
def _prefixed(path: Path) -> Iterator[None]:
    """Name the file in errors about its content."""
    try:
        yield
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from error
