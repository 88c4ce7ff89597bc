"""`dynashard queue`."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dynashard_tools.counting import plural
from dynashard_tools.failure import CommandError, on_interrupt
from dynashard_tools.files import file_errors
from dynashard_tools.latest_metrics import MetricsUnreadError
from dynashard_tools.options import AsJson, Environment
from dynashard_tools.printing import show
from dynashard_tools.queue.reach import EVENTS, NAMES, Queue, Queues, reach
from dynashard_tools.queue.redriving import depth, keep, redrive
from dynashard_tools.queue.stream import lag_of

queue = typer.Typer(
    help="Show the queues, and redrive or export dead letters.", no_args_is_help=True, add_completion=False
)

Name = Annotated[str, typer.Argument(help=f"The queue: {' or '.join(NAMES)}; with --to-file also {', '.join(EVENTS)}.")]


@queue.command()
def status(environment: Environment = None, *, as_json: AsJson = False) -> None:
    """Show how many messages wait and for how long, the dead letters, and the lag of the stream consumer.

    Numbers are approximate. The ages in a deployed environment are from CloudWatch, and about a minute late;
    without its metrics, everything else is shown.
    """
    queues, lag = reach(environment), lag_of(environment)
    urls = [url for each in queues.by_name.values() for url in (each.url, each.dead_letters_url)]
    ages: Mapping[str, float] = {}
    try:
        ages = queues.ages([*urls, *queues.events.values()])
    except MetricsUnreadError as error:
        print(f"the ages of messages are not shown: {error}", file=sys.stderr)
    rows: dict[str, dict[str, Any]] = {name: _row(queues, each, ages) for name, each in queues.by_name.items()}
    rows |= {name: _dead(queues, url, ages) for name, url in queues.events.items()}
    lines = [_line(name, row) for name, row in rows.items()]
    stream = {"behind_seconds": lag.seconds, "state": lag.state}
    show({**rows, "stream": stream}, *lines, lag.line(), as_json=as_json)


@queue.command(name="redrive")
def redrive_command(
    name: Name,
    environment: Environment = None,
    *,
    to_file: Annotated[
        Path | None, typer.Option("--to-file", help="Move them into this new file instead, as JSON Lines.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put dead letters back onto their queue, or move them into a file.

    It takes the dead letters that there are now; one that fails again becomes a dead letter again. An operation whose
    caller waits is not executed but reported as failed, because later operations on its item may have been executed.
    """
    queues = reach(environment)
    url = queues.dead_letters(name)
    most = sum(depth(queues.call, url))
    moved = 0

    def done(count: int) -> None:
        nonlocal moved
        moved += count
        if sys.stderr.isatty():
            print(f"\r{moved:,} of about {most:,}", end="", file=sys.stderr)

    where = f"put back onto {name}" if to_file is None else f"written to {to_file}"
    with on_interrupt(lambda: f"{plural(moved, 'dead letter')} {where}; the others are still dead letters"):
        if to_file is None:
            redrive(queues.call, queues.named(name), most=most, done=done)
        elif to_file.exists():
            raise CommandError(f"{to_file} exists: name a new file")
        else:
            # They hold items of tenants, so nobody else may read them.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with (
                file_errors(to_file, "written"),
                os.fdopen(os.open(to_file, flags, 0o600), "w", encoding="utf-8") as file,
            ):
                keep(queues.call, url, file, most=most, done=done)
    show({"queue": name, "messages": moved}, f"{plural(moved, 'dead letter')} {where}", as_json=as_json)


def _row(queues: Queues, found: Queue, ages: Mapping[str, float]) -> dict[str, Any]:
    waiting, in_flight = depth(queues.call, found.url)
    age = _age(waiting + in_flight, ages.get(found.url))
    dead = _dead(queues, found.dead_letters_url, ages)
    return {"waiting": waiting, "in_flight": in_flight, "oldest_seconds": age, **dead}


def _dead(queues: Queues, url: str, ages: Mapping[str, float]) -> dict[str, Any]:
    dead_letters = sum(depth(queues.call, url))
    return {"dead_letters": dead_letters, "oldest_dead_letter_seconds": _age(dead_letters, ages.get(url))}


def _age(messages: int, age: float | None) -> float | None:
    """Return the age of the oldest of so many messages in seconds; None if there is none, or nobody knows it."""
    return None if messages == 0 or age is None else round(age, 1)


def _line(name: str, row: Mapping[str, Any]) -> str:
    parts = []
    if "waiting" in row:
        waiting, in_flight = (f"{row[part]:,} {part.replace('_', ' ')}" for part in ("waiting", "in_flight"))
        parts += [f"{waiting}, {in_flight}{_oldest(row['oldest_seconds'])}"]
    parts += [f"{row['dead_letters']:,} dead letters{_oldest(row['oldest_dead_letter_seconds'])}"]
    about = f" ({EVENTS[name]})" if name in EVENTS else ""
    return f"{name}: {'; '.join(parts)}{about}"


def _oldest(seconds: float | None) -> str:
    return "" if seconds is None else f", the oldest {seconds:,.0f} s old"
