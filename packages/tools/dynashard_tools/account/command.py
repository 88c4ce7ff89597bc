"""`dynashard account`."""

import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dynashard_tools.account.cost import described_reading
from dynashard_tools.account.exporting import export as export_items
from dynashard_tools.account.purging import found
from dynashard_tools.account.recorded import purged, tenant_data
from dynashard_tools.account.records import PurgeRecord
from dynashard_tools.aws_account import OPTION, require_account
from dynashard_tools.connection import open_backend
from dynashard_tools.counting import plural
from dynashard_tools.entities import tenant_of
from dynashard_tools.failure import CommandError, on_interrupt
from dynashard_tools.left_out import LeftOut
from dynashard_tools.options import AsJson, Environment, Workers
from dynashard_tools.printing import show, utc_text
from dynashard_tools.progress import Work, working

account = typer.Typer(help="Export or remove all data of an account.", no_args_is_help=True)

Tenant = Annotated[str, typer.Argument(help="The account: the tenant that tokens name.")]


@account.command()
def export(
    tenant: Tenant,
    to: Annotated[Path, typer.Option(help="The file to write, as JSON Lines.")],
    workers: Workers = 4,
    environment: Environment = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Write every item of an account with its attachments, one JSON object a line.

    It reads the table once to find the account's partitions, and then reads these. It leaves expired items out.
    """
    tenant, backend, left_out = tenant_of(tenant), open_backend(environment), LeftOut()
    with working("{:>11,} items read, {:,} exported") as work, on_interrupt(lambda: f"{to} is unchanged"):
        scanned, done = work.adders(2)
        partitions = tenant_data(backend).partitions(tenant, time.time(), scanned)
        items = export_items(backend, partitions, to, workers=workers, advance=done, left_out=left_out)
    summary = {"account": tenant, "to": str(to), "items": items.total(), "entities": dict(items)}
    summary |= {"read_units": work.read_units, "seconds": work.seconds}
    show(summary, *_lines(tenant, items, "exported", work), as_json=as_json)
    left_out.end()


@account.command(name="purge")
def remove(
    tenant: Tenant,
    confirm: Annotated[
        str | None, typer.Option(help="The account's name once more, to confirm; without it nothing is removed.")
    ] = None,
    environment: Environment = None,
    *,
    aws_account: Annotated[
        str | None,
        typer.Option(OPTION, help="The AWS account of the environment, for programs, if cdk.json does not name it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove all stored items of an account for good, with their attachments and copies.

    Revoke the account's tokens first. It reads the whole table again until it finds nothing, and prints on standard
    error what that costs before it begins; if it is interrupted, run it again. It records the purge, so that `dynashard
    restore` repeats it.

    If cdk.json names no AWS account for the environment, --confirm is not enough: it prints whose credentials it would
    use and asks, or --aws-account names the account.
    """
    tenant, confirm = tenant_of(tenant), confirm and tenant_of(confirm)
    if confirm not in (None, tenant):
        raise CommandError(
            f"--confirm is {confirm!r}, and the account is {tenant!r}: nothing was removed. Name the same account"
        )
    backend = open_backend(environment)
    readings = 1 if confirm is None else 2
    typer.echo(described_reading(backend.transport, backend.table, readings=readings), err=True)
    if confirm is not None:
        require_account(environment, aws_account)
    data = tenant_data(backend)
    with working("{:>11,} items read, {:,} removed") as work, on_interrupt(lambda: "run it again to remove the rest"):
        scanned, done = work.adders(2)
        if confirm is None:
            kinds, verb = found(data, tenant, scanned), "would be removed (name the account with --confirm)"
        else:
            kinds, verb = purged(backend, tenant, scanned, done).removed, "removed"
    summary = {"account": tenant, "confirmed": confirm is not None, "items": kinds.total(), "types": dict(kinds)}
    summary |= {**work.units, "seconds": work.seconds}
    show(summary, *_lines(tenant, kinds, verb, work), as_json=as_json)


@account.command()
def purges(environment: Environment = None, *, as_json: AsJson = False) -> None:
    """List the purges of the last 37 days. A restore to a moment before a purge has to repeat it."""
    found = open_backend(environment).purge_records().all()
    lines = [f"{utc_text(each.began)} {each.tenant}: {_ended(each)}, of {each.table}" for each in found] or [
        "no purge is recorded"
    ]
    show({"purges": [asdict(each) for each in found]}, *lines, as_json=as_json)


def _ended(record: PurgeRecord) -> str:
    return (
        "not complete"
        if record.ended is None
        else f"{plural(record.items, 'item')} removed by {utc_text(record.ended)}"
    )


def _lines(tenant: str, kinds: Counter[str], verb: str, work: Work) -> list[str]:
    number, noun = plural(kinds.total(), "item").split()
    total = f"{number:>11} {noun} of {tenant} {verb}, {work.read_units:,.1f} read units, {work.seconds:.1f} s"
    return [*(f"{amount:>11,} {kind}" for kind, amount in sorted(kinds.items())), total]
