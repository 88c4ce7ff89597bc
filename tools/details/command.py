"""`dynashard details`."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from domain import ENTITIES
from dynashard import definition
from dynashard.transport.interface import metered
from dynashard_patterns.attachments.repository import AttachmentRepository
from dynashard_patterns.attachments.sweep import Swept
from tools.connection import open_backend
from tools.entities import exposed
from tools.failure import CommandError, CommandInterruptedError
from tools.progress import counting

_NAMES: Final = tuple(each.path for each in ENTITIES if definition(each.entity).attachments)
_HOUR: Final = 3600.0
_LEAST_HOURS: Final = 1.0

details = typer.Typer(help="Look after fields that are kept beside their items.", no_args_is_help=True)


@details.callback()
def group() -> None:
    """Look after fields that are kept beside their items."""


@details.command()
def sweep(
    entity: Annotated[
        str | None, typer.Argument(help=f"Of what: {', '.join(_NAMES)}. All of them if left out.")
    ] = None,
    hours: Annotated[
        float, typer.Option(min=_LEAST_HOURS, help="How old a version must be that no item points to.")
    ] = 24.0,
    environment: Annotated[
        str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be removed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Remove what interrupted writes and deletes, and items that expired, have left of their attachments.

    Safe at any time, beside all traffic; once a day is plenty. It reads half a unit for every 10 versions there are,
    one for each item that has some, and removing costs a write unit a KB.
    """
    chosen = _NAMES if entity is None else (entity,)
    backend = open_backend(environment)
    summary: dict[str, dict[str, int]] = {}
    with metered() as meter, counting("{:>11,} versions") as advance:
        for name in chosen:
            items = backend.entities.collection(exposed(name).entity)
            if not isinstance(items, AttachmentRepository):
                raise CommandError(f"{name} have no attachments; {', '.join(_NAMES)} do")
            summary[name] = asdict(_swept(items.sweep(grace=hours * _HOUR, dry=dry_run), name, advance))
    consumed = {"read_units": meter.consumed.read_units, "write_units": meter.consumed.write_units}
    _tell({"dry_run": dry_run, "entities": summary, **consumed}, as_json=as_json)


def _swept(steps: Iterator[Swept], name: str, advance: Callable[[int], None]) -> Swept:
    done = Swept()
    try:
        for done in steps:
            advance(done.versions)
    except KeyboardInterrupt:
        raise CommandInterruptedError(
            f"interrupted after {done.versions:,} versions of {name}: run it again to go on"
        ) from None
    return done


def _tell(summary: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(summary))
        return
    verb = "to remove" if summary["dry_run"] else "removed"
    for name, done in summary["entities"].items():
        typer.echo(
            f"{name}: {done['versions']:,} versions, {done['young']:,} too young to judge, {done['removed']:,} {verb} "
            f"with {done['pieces']:,} pieces"
        )
    typer.echo(f"{summary['read_units']:,.1f} read units, {summary['write_units']:,.0f} write units")
