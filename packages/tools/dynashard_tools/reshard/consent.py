"""Prints what a resize is expected to take, and asks on a terminal whether to start it."""

import sys
from collections.abc import Callable, Sequence
from typing import Final

import typer

from dynashard.errors import DynashardError, ReshardRefusedError
from dynashard.resharding import Estimate, Resharder, Scope
from dynashard_tools.failure import CommandError
from dynashard_tools.reshard.description import name_of, shards

_MOST: Final = 5
"""Changes that are estimated one by one. More of them are started alike, and the first few show what each takes."""


def on_terminal() -> bool:
    """Whether a person reads what is printed on standard error, and can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_consent(
    resharder: Resharder,
    scopes: Sequence[Scope],
    to: int,
    *,
    budget: float | None,
    share: float | None,
    rewrite: bool = False,
    yes: bool,
    terminal: Callable[[], bool] = on_terminal,
    ask: Callable[[str], bool] = lambda text: typer.confirm(text, err=True),
) -> None:
    """Print the estimate of each resize on standard error; on a terminal, ask whether to start unless `yes` is set.

    Without a terminal nobody can answer, so nobody is asked: a script has decided.

    Raises:
        CommandError: the answer was no; nothing was started.

    Cost: as `Resharder.estimate` for each resize, of the first five.
    """

    def estimate(scope: Scope) -> Estimate:
        return resharder.estimate(scope, to, budget=budget, share=share, rewrite=rewrite or None)

    lines = [_line(scope, estimate) for scope in scopes[:_MOST]]
    for line in filter(None, lines):
        typer.echo(line, err=True)
    if len(scopes) > _MOST:
        typer.echo(f"and {len(scopes) - _MOST:,} more resizes, which were not estimated", err=True)
    if not any(lines):
        return
    if not yes and terminal() and not ask("Start?"):
        raise CommandError("the answer was no: nothing was started")


def _line(scope: Scope, estimate_of: Callable[[Scope], Estimate]) -> str | None:
    """Return an estimate as a line; None if the resize cannot start, which its start reports."""
    try:
        estimate = estimate_of(scope)
    except ReshardRefusedError:
        return None
    except DynashardError as error:
        return f"{name_of(scope)}: what it takes is unknown ({error})"
    return f"{name_of(scope)}: {described(estimate)}"


def described(estimate: Estimate) -> str:
    """Describe an estimate: `16 shards -> 32 moves about ...`."""
    return f"{shards(estimate.origin)} -> {estimate.target} {estimate.text}"
