"""`dynashard account`."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from dynashard.transport.interface import metered
from dynashard_serving.tenant_data import Holdings
from tools.account.exporting import export as export_items
from tools.account.purging import found, purge
from tools.connection import Backend, open_backend
from tools.entities import models
from tools.failure import CommandError, CommandInterruptedError

account = typer.Typer(
    help="All that is stored of an account: write it into a file, or remove it.", no_args_is_help=True
)

Tenant = Annotated[str, typer.Argument(help="The account: the tenant that tokens name.")]
Environment = Annotated[str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")]


@account.command()
def export(
    tenant: Tenant,
    to: Annotated[Path, typer.Option(help="The file to write, as JSON Lines.")],
    workers: Annotated[int, typer.Option(min=1, max=64, help="Shards that are read at a time.")] = 4,
    environment: Environment = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Write every item of an account, attachments included, one JSON object a line.

    Reads the table once to find the account's partitions, and then these. Expired items are left out.
    """
    backend, begun = open_backend(environment), time.monotonic()
    with metered() as meter, _progress("export") as (scanned, written), _interruptible(f"{to} is as it was"):
        where = _holdings(backend).partitions(tenant, time.time(), scanned)
        items = export_items(backend, where, to, workers=workers, advance=written)
    summary = {"account": tenant, "to": str(to), "items": items.total(), "entities": dict(items)}
    units = {"read_units": meter.consumed.read_units, "seconds": round(time.monotonic() - begun, 3)}
    _tell({**summary, **units}, items, "exported", as_json=as_json)


@account.command(name="purge")
def remove(
    tenant: Tenant,
    confirm: Annotated[
        str | None, typer.Option(help="The account's name once more. Without it nothing is removed.")
    ] = None,
    environment: Environment = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Remove every stored item of an account, attachments and copies included, for good.

    Reads the table until it finds nothing. If it is interrupted, run it again. Revoke the account's tokens before.
    """
    if confirm not in (None, tenant):
        raise CommandError(f"--confirm names {confirm!r}, not {tenant!r}: nothing was removed")
    backend, begun = open_backend(environment), time.monotonic()
    hint = "some of the account may be removed: run it again to go on"
    with metered() as meter, _progress("purge") as (scanned, deleted), _interruptible(hint):
        if confirm is None:
            kinds, verb = (
                found(_holdings(backend), tenant, scanned),
                "would be removed (name the account with --confirm)",
            )
        else:
            kinds, verb = purge(_holdings(backend), tenant, scanned=scanned, removed=deleted).removed, "removed"
    summary = {"account": tenant, "confirmed": confirm is not None, "items": kinds.total(), "types": dict(kinds)}
    units = {"read_units": meter.consumed.read_units, "write_units": meter.consumed.write_units}
    _tell({**summary, **units, "seconds": round(time.monotonic() - begun, 3)}, kinds, verb, as_json=as_json)


def _holdings(backend: Backend) -> Holdings:
    return Holdings(backend.transport, backend.table, models())


@contextmanager
def _interruptible(state: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise CommandInterruptedError(f"interrupted: {state}") from None


@contextmanager
def _progress(work: str) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Takes numbers of items looked at and of items done: lines on a terminal, nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield (lambda _: None), (lambda _: None)
        return
    columns = (TextColumn("{task.description:>8} {task.completed:>11,.0f} items"), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        seen, done = bar.add_task("looked at", total=None), bar.add_task(work, total=None)
        yield (lambda more: bar.advance(seen, more)), (lambda more: bar.advance(done, more))


def _tell(summary: dict[str, Any], kinds: Counter[str], verb: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(summary))
        return
    for kind, amount in sorted(kinds.items()):
        typer.echo(f"{amount:>11,} {kind}")
    typer.echo(
        f"{kinds.total():>11,} items of {summary['account']} {verb}, {summary['read_units']:,.1f} read units, "
        f"{summary['seconds']:.1f} s"
    )
