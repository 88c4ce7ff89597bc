"""`dynashard queue`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tools.failure import CommandError
from tools.queue.reach import NAMES, Queue, Reached, reach
from tools.queue.redriving import depth, keep, redrive

queue = typer.Typer(
    help="Look at the queues, and try again what could not be done.", no_args_is_help=True, add_completion=False
)

Environment = Annotated[str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help=f"The queue: {' or '.join(NAMES)}.")]


@queue.command()
def status(environment: Environment = None, *, as_json: AsJson = False) -> None:
    """About how many messages wait, are in hand, and could not be done."""
    reached = reach(environment)
    rows = {name: _row(reached, each) for name, each in reached.queues.items()}
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for name, row in rows.items():
        typer.echo(
            f"{name}: {row['waiting']:,} waiting, {row['in_flight']:,} in flight, {row['dead_letters']:,} dead letters"
        )


@queue.command(name="redrive")
def redrive_command(
    name: Name,
    environment: Environment = None,
    *,
    to_file: Annotated[
        Path | None, typer.Option("--to-file", help="Move them into this new file, as JSON lines, instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put dead letters back onto their queue, or take them out into a file.

    Takes what there is now: what fails again is a dead letter again, and is left for the next time. An operation that
    somebody waits for is told to have failed, for others about the same item may have been done since.
    """
    reached = reach(environment)
    found = reached.named(name)
    most = sum(depth(reached.sqs, found.dead_letters_url))
    moved = 0

    def done(count: int) -> None:
        nonlocal moved
        moved += count
        if sys.stderr.isatty():
            print(f"\r{moved:,} of about {most:,}", end="", file=sys.stderr)

    if to_file is None:
        redrive(reached.sqs, found, most=most, done=done)
        where = f"put back onto {name}"
    else:
        try:
            with to_file.open("x", encoding="utf-8") as file:
                keep(reached.sqs, found, file, most=most, done=done)
        except FileExistsError as error:
            raise CommandError(f"{to_file} exists: name a new file") from error
        except OSError as error:
            raise CommandError(f"{to_file} cannot be written: {error}") from error
        where = f"written to {to_file}"
    typer.echo(json.dumps({"queue": name, "messages": moved}) if as_json else f"{moved:,} dead letters {where}")


def _row(reached: Reached, found: Queue) -> dict[str, int]:
    waiting, in_flight = depth(reached.sqs, found.url)
    return {"waiting": waiting, "in_flight": in_flight, "dead_letters": sum(depth(reached.sqs, found.dead_letters_url))}
