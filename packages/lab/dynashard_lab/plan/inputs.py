"""Reads what a plan is made from: files of items, keys and prices, and a live table's topology."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from dynashard.entity import EntityDefinition
from dynashard_lab.plan.declared import Given, Sample, estimated_bytes, sample_of
from dynashard_lab.plan.key_counts import MAX_KEY_BYTES, key_counts
from dynashard_lab.plan.prices import Prices, prices_of
from dynashard_lab.plan.skew import MAX_PARTITIONS, Skew, by_counts, even, measured, one_hot, zipf
from dynashard_tools.connection import open_backend
from dynashard_tools.failure import CommandError
from dynashard_tools.files import file_errors
from dynashard_tools.load.rows import Lines, rows
from dynashard_tools.topology.facts import EntityFacts, facts

PRICES: Final = Path(__file__).with_name("prices.json")
_MAX_EXPONENT: Final = 10
_MAX_PRICE_FILE: Final = 1024 * 1024
_LINE_BYTES: Final = MAX_KEY_BYTES + 64


def live_counts(found: EntityDefinition[Any] | None, environment: str | None) -> EntityFacts:
    """Return the shard counts in force. Cost: as `facts`.

    Raises:
        CommandError: there is no entity, or the backend cannot be reached.
    """
    if found is None:
        raise CommandError("--live needs ENTITY, whose shard counts it reads")
    [counts] = facts(open_backend(environment).topology, [found])
    return counts


def sample(found: EntityDefinition[Any] | None, path: Path | None, tenant: str | None) -> Sample | None:
    """Return the measured items of a file; None without one.

    Raises:
        CommandError: it cannot be read, or a row is not an item.
    """
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


def size(found: EntityDefinition[Any] | None, given: int | None, sample: Sample | None) -> tuple[int, str]:
    """Return the bytes of an item, and where they come from in words.

    Raises:
        CommandError: nothing says how large an item is.
    """
    if given is not None:
        return given, "given"
    if sample is not None:
        return sample.item_bytes, f"the mean of {sample.items:,} items"
    if found is not None:
        return estimated_bytes(found), "estimated from the declaration: --item-bytes or --items is better"
    raise CommandError("the item size is missing: give --item-bytes, or ENTITY")


def skew(
    partitions: int | None,
    hottest: float | None,
    exponent: float | None,
    keys: Path | None,
    *,
    sample: Sample | None,
    live: EntityFacts | None,
) -> Skew:
    """Return how traffic is spread: as given, or measured in keys, live shard counts or items, in this order.

    Raises:
        CommandError: the options contradict each other, a file cannot be read, or a value is out of its bounds.
    """
    options = (("--hottest", hottest), ("--zipf", exponent), ("--keys", keys))
    given = [name for name, value in options if value is not None]
    if len(given) > 1:
        raise CommandError(f"{' and '.join(given)} contradict each other: give one of them")
    if keys is not None:
        if partitions is not None:
            raise CommandError("--keys counts the partitions: leave --partitions out")
        with _opened(keys) as stream, _prefixed(keys):
            return measured(key_counts(iter(lambda: stream.readline(_LINE_BYTES), b"")), f"measured in {keys.name}")
    if sample is not None and partitions is None and live is None and not given:
        return measured(sample.partitions, "measured in the items")
    number = _partitions(partitions, live)
    if hottest is not None:
        return one_hot(number, hottest)
    if exponent is not None:
        if not 0 <= exponent <= _MAX_EXPONENT:
            raise CommandError(f"zipf is {exponent:g}; it must be between 0 and {_MAX_EXPONENT}")
        return zipf(number, exponent)
    if live is None or not live.partitions:
        return even(number)
    return by_counts([count.count for count in live.partitions.values()], live.common.count, number)


def _partitions(given: int | None, live: EntityFacts | None) -> int:
    number = given if given is not None else max(1, len(live.partitions)) if live else 1
    if not 1 <= number <= MAX_PARTITIONS:
        raise CommandError(f"partitions is {number:,}; it must be between 1 and {MAX_PARTITIONS:,}")
    return number


def numbers(pairs: Sequence[str], option: str, example: str) -> dict[str, float]:
    """Return the numbers of options such as `by_email=0.2`.

    Raises:
        CommandError: one is malformed.
    """
    found: dict[str, float] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            found[name] = float(text)
        except ValueError:
            raise CommandError(f"{option} {pair!r} is not NAME=NUMBER, such as {example}") from None
    return found


def given(
    hottest: Sequence[str] | None,
    key_changes: Sequence[str] | None,
    entry_bytes: Sequence[str] | None,
    live: EntityFacts | None,
) -> Given:
    """Return what options such as `by_email=0.2` say about indexes, and their shard counts in force.

    Raises:
        CommandError: as `numbers`.
    """
    return Given(
        hottest=numbers(hottest or [], "--index", "by_email=0.2"),
        key_changes=numbers(key_changes or [], "--index-changes", "by_email=0.1"),
        entry_bytes=numbers(entry_bytes or [], "--index-bytes", "by_email=200"),
        counts={name: each.count for name, each in live.indexes.items()} if live else None,
    )


def read_prices(path: Path | None, region: str, overrides: Sequence[str]) -> Prices:
    """Return the prices of a region, from a file or the included one.

    Raises:
        CommandError: the file cannot be read.
        ValueError: as `prices_of`.
    """
    source = path or PRICES
    single = numbers(overrides, "--price", "read_unit_hour=0.00013")
    with _opened(source) as stream, _prefixed(source):
        text = stream.read(_MAX_PRICE_FILE + 1)
        if len(text) > _MAX_PRICE_FILE:
            raise ValueError("larger than 1 MB; is this the right file?")
        document = json_object(text)
    return prices_of(document, region, single)


def json_object(text: bytes) -> Mapping[str, Any]:
    """Return the JSON object that a text is.

    Raises:
        ValueError: it is none.
    """
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
