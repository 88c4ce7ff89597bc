"""`dynashard details`."""

from dataclasses import asdict
from typing import Annotated, Final

import typer

from dynashard import definition
from dynashard_patterns.attachments.repository import AttachmentRepository
from dynashard_patterns.attachments.sweep import Swept
from dynashard_serving.domain import declared
from dynashard_tools.connection import open_backend
from dynashard_tools.entities import exposed
from dynashard_tools.failure import CommandError, on_interrupt
from dynashard_tools.options import AsJson, DryRun, Environment
from dynashard_tools.progress import show, working

_NAMES: Final = tuple(each.path for each in declared().entities if definition(each.entity).attachments)
_HOUR: Final = 3600.0
_LEAST_HOURS: Final = 1.0

details = typer.Typer(help="Remove leftovers of attachments (fields stored out of line).", no_args_is_help=True)


@details.callback()
def group() -> None:
    """Remove leftovers of attachments (fields stored out of line)."""


@details.command()
def sweep(
    entity: Annotated[
        str | None, typer.Argument(help=f"Attachments of: {', '.join(_NAMES)}. All of them if left out.")
    ] = None,
    hours: Annotated[
        float, typer.Option(min=_LEAST_HOURS, help="Remove versions without an item that are older than this.")
    ] = 24.0,
    environment: Environment = None,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Remove attachments that interrupted writes, interrupted deletes and expired items have left.

    Safe during normal traffic; once a day is enough. It reads half a unit for every 10 versions, one for each item that
    has some, and removing costs a write unit a KB.
    """
    backend = open_backend(environment)
    summary: dict[str, dict[str, int]] = {}
    with working("{:>11,} versions") as work:
        for name in _NAMES if entity is None else (entity,):
            items, done = backend.entities.collection(exposed(name).entity), Swept()
            if not isinstance(items, AttachmentRepository):
                raise CommandError(f"{name} have no attachments. Those with some are: {', '.join(_NAMES)}")
            with on_interrupt(lambda: "run it again to remove the rest"):
                for done in items.sweep(grace=hours * _HOUR, dry=dry_run):
                    work.advance(done.versions)
            summary[name] = asdict(done)
    verb = "to remove" if dry_run else "removed"
    lines = [
        f"{name}: {done['versions']:,} versions, {done['young']:,} too young to judge, {done['removed']:,} {verb} "
        f"with {done['pieces']:,} pieces"
        for name, done in summary.items()
    ]
    lines.append(f"{work.read_units:,.1f} read units, {work.write_units:,.0f} write units")
    show({"dry_run": dry_run, "entities": summary, **work.units}, *lines, as_json=as_json)
