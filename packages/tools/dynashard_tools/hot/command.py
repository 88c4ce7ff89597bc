"""`dynashard hot`."""

import time
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Final

import typer

from dynashard import definition
from dynashard.resharding import Resharder, Scope, Status
from dynashard_serving import aws_services
from dynashard_tools.app import VARIABLE
from dynashard_tools.connection import Backend, open_backend
from dynashard_tools.entities import declared, models
from dynashard_tools.environments import environment_named
from dynashard_tools.failure import CommandError
from dynashard_tools.hot.advice import Hot, as_dict, grouped, judged, lines
from dynashard_tools.hot.places import Place, place_of
from dynashard_tools.hot.simulated import Simulated, simulated
from dynashard_tools.hot.throttles import CAUSES, PAGES, SLOTS, CloudWatch, ThrottledKey, Throttles
from dynashard_tools.options import AsJson, Environment
from dynashard_tools.printing import show, utc_text
from dynashard_tools.reshard.description import line
from dynashard_tools.reshard.scopes import own_scopes

MOST_MINUTES: Final = 24 * 60
"""The longest window of one report of CloudWatch."""
_SHOWN: Final = 20
_GROWTH: Final = "throttle"
"""The cause of resizes that the growth policy requests."""
_MANY: Final = 10
"""Throttled partitions above which the table itself is likely the cause."""


def hot(
    environment: Environment = None,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=MOST_MINUTES, help="How many minutes to look back.")
    ] = 15,
    region: Annotated[
        str | None, typer.Option(help="The region of a program's tables (DYNASHARD_DB), whose CloudWatch is read.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show which keys DynamoDB throttles, why, and the command that helps.

    With `--env` it reads CloudWatch: the throttles by reason, and the throttled keys by contributor insights; so it
    does for the tables of a program (DYNASHARD_DB) with `--region`. The local stack has both only if it runs with
    SIMULATE. Without that, it shows the shard counts that are changing, and those that have grown because of throttles.
    """
    backend = open_backend(environment)
    source = _source(backend, environment, region)
    if source is None:
        _local(backend, as_json=as_json)
        return
    throttles, problems = source.counts(minutes), list[str]()
    keys = list(_keys(source, minutes, problems))
    placed = {(each.slot, each.partition): place_of(each.partition, each.slot, declared().entities) for each in keys}
    resharder = backend.resharder()
    begin = time.time() - minutes * 60
    found = [_described(each, resharder, environment, begin) for each in grouped(keys, placed)][:_SHOWN]
    unknown = sorted({key for (_, key), place in placed.items() if place is None})
    summary = {
        "minutes": minutes,
        "throttles": [_count(each) for each in throttles],
        "hot": found,
        "unknown_keys": unknown,
        "problems": problems,
    }
    show(summary, *_text(summary, throttles), as_json=as_json)
    if problems and not found:
        raise CommandError(problems[0])


def _source(backend: Backend, environment: str | None, region: str | None) -> CloudWatch | Simulated | None:
    if region is not None and not backend.drives:
        raise CommandError(f"--region is for the tables of a program ({VARIABLE}); --env names those of a backend")
    if environment is not None:
        client = environment_named(environment).client
    elif region is not None:
        client = partial(aws_services.client, region_name=region)
    else:
        return simulated(backend.endpoint)
    return CloudWatch(client("dynamodb"), client("cloudwatch"), backend.table, time.time)


def _keys(source: CloudWatch | Simulated, minutes: int, problems: list[str]) -> Iterable[ThrottledKey]:
    for slot in SLOTS:
        try:
            yield from source.keys(slot, minutes)
        except CommandError as error:
            problems.append(str(error))


def _described(found: Hot, resharder: Resharder, environment: str | None, begin: float) -> dict[str, Any]:
    status, most = _status(found.place, resharder), _most(found.place)
    return as_dict(found, status, judged(found, status, most=most, begin=begin), environment=environment)


def _status(place: Place, resharder: Resharder) -> Status | None:
    if not place.sharded:
        return None
    prefix = f"{place.definition.prefix}{place.definition.separator}" if place.definition.prefix else ""
    partition = None if place.index is not None else f"{prefix}{place.partition}"
    return resharder.status(Scope(place.definition, partition, index=place.index))


def _most(place: Place) -> int | None:
    shards = place.definition.shards if place.index is None else place.index.shards
    return None if shards is None else shards.max


def _count(each: Throttles) -> dict[str, Any]:
    return {
        "resource": each.slot or "table",
        "way": each.way.lower(),
        "cause": CAUSES[each.cause],
        "events": each.events,
        "page": f"docs/runbooks/{PAGES[each.cause]}.md",
    }


def _text(summary: dict[str, Any], throttles: list[Throttles]) -> list[str]:
    window = f"in the last {summary['minutes']} minutes"
    shown = [f"throttles {window}: none"] if not throttles else [f"throttles {window}:"]
    shown += [
        f"  {each['resource']} {each['way']}s: {each['events']:,}, {each['cause']} ({each['page']})"
        for each in summary["throttles"]
    ]
    shown += lines(summary["hot"])
    shown += [f"{key}: throttled, but no entity has such keys" for key in summary["unknown_keys"]]
    if len(summary["hot"]) > _MANY:
        shown.append("many partitions are throttled: the table may be cold (docs/runbooks/throttled-key.md)")
    if throttles and not summary["hot"] and not summary["problems"]:
        shown.append("the keys are not known yet: contributor insights are a few minutes behind; try again")
    return shown + [f"warning: {each}" for each in summary["problems"]]


def _local(backend: Backend, *, as_json: bool) -> None:
    """Show the shard counts that change, and those that have grown because of throttles, newest first."""
    resharder = backend.resharder()
    changing = resharder.busy()
    own = (scope for model in models() for scope in own_scopes(backend, resharder, definition(model)))
    ended = {status.key: status for status in map(resharder.status, own) if not status.busy}
    reached = (each for each in ended.values() if each.cause == _GROWTH and each.taken_back is None)
    grown = sorted(reached, key=lambda each: each.since)[::-1]
    text = [line(each) for each in changing] or ["no shard count is changing"]
    text += [f"{line(each)}, since {utc_text(each.since)} because of throttles" for each in grown[:_SHOWN]]
    summary = {name: [each.as_dict() for each in found] for name, found in (("changing", changing), ("grown", grown))}
    note = "without SIMULATE, the local stack has no metrics of throttles"
    if backend.drives:
        note = f"CloudWatch has the throttles of {backend.table}: name its region with --region"
    show(summary, f"{note}. Shard counts that are changing or have grown:", *text, as_json=as_json)
