"""`dynashard events`."""

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Annotated, Any, Final

import typer

from dynashard.entity import definition
from dynashard_local.bus.following import Follower, Wanted
from dynashard_local.bus.store import DATABASE, EventStore
from dynashard_local.errors import LocalStackError
from dynashard_local.settings import Settings
from dynashard_tools.app import new_app
from dynashard_tools.counting import plural
from dynashard_tools.entities import declared, exposed, tenant_of
from dynashard_tools.events.buses import bus_of
from dynashard_tools.events.replaying import replayed
from dynashard_tools.failure import STILL_WRONG, CommandError, on_interrupt
from dynashard_tools.options import AsJson, Environment
from dynashard_tools.printing import show
from dynashard_tools.queue.reach import reach
from dynashard_tools.queue.redriving import depth

POLL_SECONDS: Final = 0.2
DEAD: Final = "changes"
"""The dead-letter queue of the function that publishes."""

events = new_app("Show the events on the local bus, and publish again those that became dead letters.")
events.info.no_args_is_help = False


@events.callback(invoke_without_command=True)
def show_events(
    context: typer.Context,
    tenant: Annotated[str | None, typer.Option(help="Only those of a tenant.")] = None,
    entity: Annotated[str | None, typer.Option(help="Only those of an entity, such as incidents.")] = None,
    since: Annotated[int | None, typer.Option(min=0, help="Those after the event with this number; 0 for all.")] = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events until Ctrl-C.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show events that the local stack published: all that it kept, or with `--follow` those from now on.

    Deployed, events are on a bus of EventBridge, which keeps none: add a rule to the bus, as docs/events.md shows.
    """
    if context.invoked_subcommand is not None:
        return
    model = None if entity is None else exposed(entity).entity
    wanted = Wanted(tenant and tenant_of(tenant), None if model is None else definition(model).name)
    if model is not None and all(each.of is not model for each in declared().declarations.events):
        # Those of a declaration that was removed may still be on the bus.
        text = f"{wanted.entity} declares no events: write Events(of={model.__name__}) in a module of the domain"
        typer.echo(text, err=True)
    with closing(_store()) as store:
        start = since if since is not None else store.last if follow else 0
        try:
            for number, document in _followed(Follower(store, wanted, start), forever=follow):
                typer.echo(json.dumps({"number": number, **document}) if as_json else _line(number, document))
        except KeyboardInterrupt:
            return


@events.command()
def replay(environment: Environment = None, *, as_json: AsJson = False) -> None:
    """Publish the events of dead letters again, after what refused them has been mended, and remove the letters.

    It takes the dead letters that there are now, also those of items that did not fit their declaration. Those of
    copies and roll-ups, and those without the item, stay: `dynashard verify` repairs what the former were about.
    Consumers of events see from `previous` that one came late.

    Exit status: 0 if no dead letter of an event is left; 4 if some are.
    """
    queues = reach(environment)
    if DEAD not in queues.events:
        raise CommandError("the stack Changes has no dead-letter queue: deploy it again from this version")
    url = queues.events[DEAD]
    most = sum(depth(queues.call, url))
    with (
        bus_of(environment) as publish,
        on_interrupt(lambda: "some events may be published: run it again for the dead letters that are left"),
    ):
        done = replayed(queues.call, url, publish, most=most)
    summary = {"published": done.published, "refused": done.refused, "others": done.others}
    show(
        summary,
        f"{plural(done.published, 'event')} published; {done.refused:,} refused again; "
        f"{plural(done.others, 'dead letter')} of others",
        as_json=as_json,
    )
    if done.refused:
        raise typer.Exit(STILL_WRONG)


def _store() -> EventStore:
    try:
        path = Settings.from_env(os.environ).data_dir / DATABASE
    except LocalStackError as error:
        raise CommandError(str(error)) from error
    try:
        store = EventStore.reading(path)
        _ = store.last
    except sqlite3.DatabaseError as error:
        then = "start the local stack with `make run`; if its data are elsewhere, set DATA_DIR as for `make run`"
        if path.exists():
            then = "it is damaged. Move it away with its -wal and -shm files, and start the local stack again"
        raise CommandError(f"{path} cannot be read ({error}): {then}") from error
    return store


def _followed(follower: Follower, *, forever: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    while True:
        yield from follower.new()
        if not forever:
            return
        time.sleep(POLL_SECONDS)


def _line(number: int, document: Mapping[str, Any]) -> str:
    detail = document["detail"]
    key = " ".join(f"{name}={value}" for name, value in detail.get("key", {}).items())
    return f"{number}  {document['time']}  {document['detail-type']}  {key}  {detail.get('revision') or ''}".rstrip()
