"""`dynashard queue`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tools.failure import CommandError, file_errors
from tools.options import AsJson, Environment
from tools.progress import show
from tools.queue.reach import NAMES, Queue, Queues, reach
from tools.queue.redriving import depth, keep, redrive

queue = typer.Typer(
    help="Look at the queues, and redrive or export dead letters.", no_args_is_help=True, add_completion=False
)

Name = Annotated[str, typer.Argument(help=f"The queue: {' or '.join(NAMES)}.")]


@queue.command()
def status(environment: Environment = None, *, as_json: AsJson = False) -> None:
    """Report about how many messages wait, are in flight, and are dead letters."""
    queues = reach(environment)
    rows = {name: _row(queues, each) for name, each in queues.by_name.items()}
    lines = [
        f"{name}: {row['waiting']:,} waiting, {row['in_flight']:,} in flight, {row['dead_letters']:,} dead letters"
        for name, row in rows.items()
    ]
    show(rows, *lines, as_json=as_json)


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
    """Put dead letters back onto their queue, or move them into a file.

    Takes what there is now: a message that fails again becomes a dead letter again, and stays one. An operation whose
    caller waits is reported as failed, because later operations on its item may have been executed since.
    """
    queues = reach(environment)
    found = queues.named(name)
    most = sum(depth(queues.call, found.dead_letters_url))
    moved = 0

    def done(count: int) -> None:
        nonlocal moved
        moved += count
        if sys.stderr.isatty():
            print(f"\r{moved:,} of about {most:,}", end="", file=sys.stderr)

    if to_file is None:
        redrive(queues.call, found, most=most, done=done)
        where = f"put back onto {name}"
    else:
        if to_file.exists():
            raise CommandError(f"{to_file} exists: name a new file")
        with file_errors(to_file, "written"), to_file.open("x", encoding="utf-8") as file:
            keep(queues.call, found, file, most=most, done=done)
        where = f"written to {to_file}"
    show({"queue": name, "messages": moved}, f"{moved:,} dead letters {where}", as_json=as_json)


def _row(queues: Queues, found: Queue) -> dict[str, int]:
    waiting, in_flight = depth(queues.call, found.url)
    dead_letters = sum(depth(queues.call, found.dead_letters_url))
    return {"waiting": waiting, "in_flight": in_flight, "dead_letters": dead_letters}
