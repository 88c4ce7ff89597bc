"""`dynashard load`."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from dynashard.entity import definition
from dynashard.transport.interface import metered
from dynashard_serving.declare import Exposed
from dynashard_serving.documents import TENANT
from dynashard_serving.settings import tenant_rule
from dynashard_serving.tenants import TenantRule
from dynashard_tools.connection import open_backend
from dynashard_tools.counting import plural
from dynashard_tools.entities import exposed, loadable, models, names_beginning, tenant_of
from dynashard_tools.failure import WITH_ERRORS, CommandError
from dynashard_tools.files import file_errors
from dynashard_tools.load.checkpoint import Checkpoint, CheckpointFile
from dynashard_tools.load.exported import ExportedRows
from dynashard_tools.load.loader import LineError, Load
from dynashard_tools.load.old_keys import OldKeys
from dynashard_tools.load.rows import MAX_ROW_BYTES, Lines, rows
from dynashard_tools.options import AsJson, Environment
from dynashard_tools.printing import show

Format = Literal["csv", "jsonl"]
LOADED: Final = tuple(each.path for each in loadable())


def load(  # noqa: PLR0917 - typer calls it by name
    entity: Annotated[str, typer.Argument(help=f"What to load: {', '.join(LOADED)}.", autocompletion=names_beginning)],
    file: Annotated[str, typer.Argument(help="The file, or - for standard input.")],
    tenant: Annotated[
        str | None, typer.Option(help="The tenant of all rows; needed if the rows do not name one.")
    ] = None,
    file_format: Annotated[
        Format | None, typer.Option("--format", help="The format of FILE. If left out, its name decides.")
    ] = None,
    on_error: Annotated[Literal["stop", "skip"], typer.Option(help="What to do with a bad line.")] = "stop",
    errors: Annotated[Path | None, typer.Option(help="Also write bad lines to this file, as JSON Lines.")] = None,
    state: Annotated[
        Path | None, typer.Option(help="Where to keep the checkpoint; FILE.load-state if left out.")
    ] = None,
    environment: Environment = None,
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a load that ended early.")] = False,
    from_export: Annotated[
        bool,
        typer.Option(
            "--from-export", help="FILE is an export: leave out what the server sets, and items of other entities."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all rows, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Load a file of items, such as `dynashard load users examples/users.csv --tenant abc`.

    FILE is CSV with a header line, or JSON Lines, in UTF-8; `-` reads standard input. Every row is checked by the
    entity's declaration before it is written. A row whose key has an item replaces it; a row without an id becomes a
    new item. `--from-export` loads what `dynashard export` or `dynashard account export` has written.

    A load that ended early continues with `--resume`: no row becomes two items. Exit status: 0 if every line was
    loaded, 3 if lines were left out, also by earlier attempts, 1 if the load ended early, 130 after Ctrl-C.
    """
    if errors is not None and errors.exists() and Path(file).exists() and errors.samefile(file):
        raise CommandError(f"--errors is {errors}, the file to load, which it would replace: name another file")
    tenants, tenant = tenant_rule(os.environ), tenant and tenant_of(tenant)
    wanted = _wanted(entity, tenant, tenants)
    chosen = _format(file, file_format)
    # A dry run checks the whole file, whatever an earlier load has done, unless it is to resume that load.
    checkpoints = CheckpointFile(None if dry_run and not resume else state or _default_state(file))
    with _opened(file) as stream:
        backend = open_backend(environment, reach=not dry_run)
        checkpoint = checkpoints.open(backend.target, wanted.entity.__name__, tenant, resume=resume)
        items = backend.writer().collection(wanted.entity)
        exported = ExportedRows(items.entity, cells=chosen == "csv") if from_export else None
        columns = frozenset(wanted.entity.model_fields) - (frozenset() if exported else items.entity.server_fields)
        lines = Lines(stream, longest=_longest_line())
        with (
            _reporting(errors, resume=resume) as report,
            _progress(file, checkpoint.written) as advance,
            metered() as meter,
        ):
            begun = time.monotonic()
            old = OldKeys(items.entity, backend.topology, lambda text: typer.echo(text, err=True))
            stop = on_error == "stop" and not dry_run
            task = Load(items, checkpoints, checkpoint, stop, dry_run, report, advance, old, tenants, exported)
            found = rows(lines, chosen, columns)
            end = task.run(lines, found if exported is None else map(exported.row, found))
            seconds = time.monotonic() - begun
    done = Done(
        wanted.path,
        end.written - checkpoint.written,
        end.refused - checkpoint.refused,
        seconds,
        meter.consumed.write_units,
        old.number,
        checkpoint.refused,
        others=exported.others if exported else 0,
        dry_run=dry_run,
    )
    show(done.as_dict(), done.line(), as_json=as_json)
    if end.refused:
        raise typer.Exit(WITH_ERRORS)


@dataclass(frozen=True, slots=True)
class Done:
    """What a load has done since it began or was resumed.

    Attributes:
        entity: the name of the entity in URLs.
        items: rows that were stored, or checked in a dry run.
        refused: lines that were left out.
        seconds: how long it took.
        write_units: what it consumed.
        old: items whose epoch is not the newest of their partition.
        refused_before: lines that earlier attempts have left out.
        others: lines of an export that are of other entities, with those that earlier attempts have read.
        dry_run: whether it only checked.
    """

    entity: str
    items: int
    refused: int
    seconds: float
    write_units: float
    old: int
    refused_before: int = 0
    others: int = 0
    dry_run: bool = field(kw_only=True)

    @property
    def rate(self) -> float:
        """Items a second."""
        return round(self.items / self.seconds, 1) if self.seconds else 0.0

    def as_dict(self) -> dict[str, object]:
        """Return the summary for programs."""
        return {
            "entity": self.entity,
            "items": self.items,
            "refused": self.refused,
            "refused_before": self.refused_before,
            "seconds": round(self.seconds, 3),
            "items_per_second": self.rate,
            "write_units": self.write_units,
            "in_older_epochs": self.old,
            "of_other_entities": self.others,
            "dry_run": self.dry_run,
        }

    def line(self) -> str:
        """Return the summary for people."""
        return (
            f"{'checked' if self.dry_run else 'loaded'} {plural(self.items, f'item of {self.entity}', self.entity)} "
            f"in {self.seconds:.1f} s ({self.rate:,.0f}/s), {plural(round(self.write_units), 'write unit')}, "
            f"{plural(self.refused, 'line')} refused"
            + (f", {self.refused_before} before it was resumed" if self.refused_before else "")
            + (f", {self.old:,} in older epochs" if self.old else "")
            + (f", {plural(self.others, 'line')} of other entities" if self.others else "")
        )


def _wanted(name: str, tenant: str | None, tenants: TenantRule) -> Exposed:
    found = exposed(name)
    if found not in loadable():
        raise CommandError(f"{found.path} are written by the backend itself: load some of {', '.join(LOADED)}")
    if tenant is not None and TENANT not in found.entity.model_fields:
        raise CommandError(f"{found.path} have no {TENANT}: leave --tenant out")
    if tenant is not None and not tenants.allows(tenant):
        raise CommandError(
            f"{tenant!r} is not a tenant of the API: it must match {tenants.pattern} (set TENANT_PATTERN if the "
            "environment has another pattern)"
        )
    return found


def _format(file: str, given: Format | None) -> Format:
    if given is not None:
        return given
    if file.endswith(".csv"):
        return "csv"
    if file.endswith((".jsonl", ".ndjson")):
        return "jsonl"
    raise CommandError(f"the format of {file!r} is not known: give --format csv or --format jsonl")


def _longest_line() -> int:
    """How many bytes a line may have: an item, and the attachments of the entity that may have the largest ones."""
    attached = (sum(each.max_bytes for each in definition(model).attachments.values()) for model in models())
    return MAX_ROW_BYTES + max(attached, default=0)


def _default_state(file: str) -> Path | None:
    return None if file == "-" else Path(f"{file}.load-state")


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with file_errors(file, "read"):
        stream = Path(file).open("rb")  # noqa: SIM115 - closed below; opening alone may fail
    with stream:
        yield stream


@contextmanager
def _progress(file: str, before: int) -> Iterator[Callable[[Lines, Checkpoint], None]]:
    """A bar on a terminal, nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda *_: None
        return
    total = None if file == "-" else Path(file).stat().st_size
    columns = (
        TextColumn("{task.fields[items]:>9,} items"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]:>7,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        begun = time.monotonic()
        shown = bar.add_task("load", total=total, items=0, rate=0.0)

        def advance(lines: Lines, checkpoint: Checkpoint) -> None:
            rate = (checkpoint.written - before) / max(time.monotonic() - begun, 1e-9)
            bar.update(shown, completed=lines.bytes_read, items=checkpoint.written, rate=rate)

        yield advance


@contextmanager
def _reporting(path: Path | None, *, resume: bool) -> Iterator[Callable[[LineError], None]]:
    if path is None:
        yield lambda error: print(error, file=sys.stderr)
        return
    with file_errors(path, "written"):
        file = path.open("a" if resume else "w")
    with file:

        def report(error: LineError) -> None:
            print(error, file=sys.stderr)
            # Flushed before the checkpoint is kept, which counts these lines.
            print(json.dumps(asdict(error)), file=file, flush=True)

        yield report
