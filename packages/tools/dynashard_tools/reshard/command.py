"""`dynashard reshard`."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Final

import typer

from dynashard.errors import ReshardRefusedError
from dynashard.resharding import Resharder, Scope, Status
from dynashard.resharding.checks import check_possible
from dynashard_tools.aws_account import show_account
from dynashard_tools.connection import Backend, open_backend
from dynashard_tools.environments import environment_named
from dynashard_tools.failure import CommandError, on_interrupt
from dynashard_tools.options import AnyEntity, AsJson, EntityName, Environment
from dynashard_tools.reshard.consent import on_terminal, require_consent
from dynashard_tools.reshard.description import arguments, line, lines, overdue, reached, shards
from dynashard_tools.reshard.driving import driven
from dynashard_tools.reshard.halting import halt
from dynashard_tools.reshard.scopes import all_scopes, busy_of, named_scope, own_scopes, require_items
from dynashard_tools.reshard.watch import report_no_worker, wait_for, watch_until

reshard = typer.Typer(
    help="Change shard counts during normal traffic, and watch the resizes.", no_args_is_help=True, add_completion=False
)

_WATCH: Final = "`dynashard reshard status {} --watch` watches it"
_WORK: Final = "`dynashard reshard work` carries it out"
_WATCHED: Final = ("running", "not_swept")
"""Reasons of refusals that do not say what to do."""

Partition = Annotated[
    str | None,
    typer.Argument(help="A logical partition, such as abc. If left out: all partitions without a count of their own."),
]
Index = Annotated[str | None, typer.Option("--index", help="Change the count of this index instead.")]
All = Annotated[
    bool, typer.Option("--all", help="All partitions of the entity, including those with a count of their own.")
]


@reshard.command()
def start(
    entity: EntityName,
    partition: Partition = None,
    index: Index = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="Write units a second that moving items may take.")
    ] = None,
    environment: Environment = None,
    *,
    to: Annotated[int, typer.Option("--to", help="The new count: a power of two up to 1024.")],
    share: Annotated[
        float | None,
        typer.Option("--share", help="The share of each shard's units that moving items may take, such as 0.5."),
    ] = None,
    everything: All = False,
    survey: Annotated[bool, typer.Option(help="Count first how many items will move, for the progress bar.")] = True,
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Give older entries of the index places of the new count, too.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Allow a PARTITION without items.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the new count is stable.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal whether to start.")] = False,
    as_json: AsJson = False,
) -> None:
    """Request another shard count, which a worker carries out.

    First it prints on standard error what the resize is expected to take: items, units, dollars and time at the mover's
    share. On a terminal it asks whether to start, unless `--yes` is given; a script without a terminal is not asked. If
    cdk.json names no account for the environment, it prints whose credentials it uses, and a script needs `--yes`.

    It refuses a PARTITION without items, because the name may be mistyped. For a partition that is still empty, add
    `--create`.

    More shards of an index hold for new entries alone: nothing is written, and readers look for older entries where
    they stand. With `--rewrite` these come to their new places, also later, with the same count.

    The tables of a program (DYNASHARD_DB) have no worker: there, `--wait` itself carries the resize out.

    Exit status: 0 when the resize is requested; with `--wait`, when the new count is stable. Ctrl-C ends the waiting,
    not the resize.
    """
    wanted = _wanted(entity, partition, index, everything=everything)
    if rewrite and index is None:
        raise CommandError("--rewrite is for the entries of an index: name it with --index")
    backend = open_backend(environment)
    resharder = backend.resharder()
    if partition is not None and not create:
        try:
            check_possible(wanted, to, budget, share)
        except ReshardRefusedError as error:
            raise CommandError(f"{error} ({error.reason})") from None
        require_items(backend, entity, partition)
    chosen = all_scopes(backend, resharder, entity) if everything else [wanted]

    def begin(scope: Scope) -> Status:
        return resharder.start(scope, to, budget=budget, share=share, survey=survey, rewrite=rewrite or None)

    show_account(environment, answered=yes or on_terminal())
    require_consent(resharder, chosen, to, budget=budget, share=share, rewrite=rewrite, yes=yes)

    begun, refused = _each(resharder, chosen, begin, skip="same_count" if everything else None)
    if not wait:
        _print(begun, as_json=as_json, many=everything)
        if not as_json and begun:
            typer.echo(_WORK if backend.drives else _WATCH.format(arguments(begun[-1])))
    if not everything and partition is None and index is None and not as_json:
        _mention_own(own_scopes(backend, resharder, wanted.entity))
    if wait:
        with driven(backend, resharder):
            ended = wait_for(backend, resharder, begun, to)
        _print(ended, as_json=as_json, many=everything, describe=reached)
    _raise(refused)


@reshard.command()
def status(
    entity: AnyEntity = None,
    partition: Partition = None,
    index: Index = None,
    environment: Environment = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Continue until nothing is changing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress of all resizes; or the count of an entity, a partition or an index, and its resize if any.

    Counts that depend on the time of keys are shown epoch by epoch. `dynashard topology ENTITY PARTITION` counts the
    items of each.

    Exit status: 0, whether or not anything is changing.
    """
    if entity is None and index is not None:
        raise CommandError("--index is given without an entity: name the entity of the index")
    scope = None if entity is None else named_scope(entity, partition, index)
    backend = open_backend(environment)
    resharder = backend.resharder()

    def poll() -> Sequence[Status]:
        if scope is None or entity is None:
            return resharder.busy()
        here = [resharder.status(scope)]
        others = busy_of(resharder, entity) if scope.whole_family else []
        return here + [each for each in others if each.key != scope.key]

    if watch:
        _watch(backend, poll, as_json=as_json)
        return
    seen = poll()
    _print(seen, as_json=as_json, many=True, describe=lines)
    if not as_json and not seen:
        typer.echo("nothing is changing")
    if any(overdue(each, time.time()) for each in seen):
        report_no_worker(backend.worker)


@reshard.command()
def work(*, as_json: AsJson = False) -> None:
    """Carry out what is requested and under way in the tables of a program (DYNASHARD_DB), until nothing is.

    A backend has a worker of its own. Ctrl-C leaves the resizes as they are; the next `work` continues them.

    Exit status: 0 when nothing is under way any more, except paused resizes.
    """
    backend = open_backend(None)
    if not backend.drives:
        raise CommandError(f"this is for tables without a worker; here {backend.worker}")
    resharder = backend.resharder()
    with driven(backend, resharder):
        _watch(backend, lambda: [each for each in resharder.busy() if not each.paused], as_json=as_json)


def _called_off(status: Status) -> str:
    if status.back_to is None:
        return f"{arguments(status)}: called off; {shards(status.count)} as before"
    return (
        f"{arguments(status)}: items are moving already, so the resize cannot stop here. It is completed, swept, "
        f"and then changed back to {shards(status.back_to)}; {_WATCH.format(arguments(status))}"
    )


def _add(name: str, act: Callable[[Resharder, Scope], Status], describe: Callable[[Status], str], text: str) -> None:
    """Add a command that acts on a resize, or on all resizes of an entity."""

    def command(
        entity: EntityName,
        partition: Partition = None,
        index: Index = None,
        environment: Environment = None,
        *,
        everything: All = False,
        as_json: AsJson = False,
    ) -> None:
        wanted = _wanted(entity, partition, index, everything=everything)
        backend = open_backend(environment)
        resharder = backend.resharder()
        chosen = [resharder.scope(each.key) for each in busy_of(resharder, entity)] if everything else [wanted]
        if not chosen:
            raise CommandError(f"no resize of {wanted.family} is under way")
        done, refused = _each(resharder, chosen, lambda scope: act(resharder, scope))
        _print(done, as_json=as_json, many=everything, describe=describe)
        if backend.drives and not as_json and any(each.busy and not each.paused for each in done):
            typer.echo(_WORK)
        _raise(refused)

    reshard.command(name, help=text)(command)


_add(
    "abort",
    Resharder.abort,
    _called_off,
    "Abort a resize. Before items move, it ends at once; later, it is completed and then changed back.",
)
_add("pause", Resharder.pause, line, "Pause a resize until it is resumed. Traffic continues.")
_add("resume", Resharder.resume, line, "Resume a paused resize, including one that an error has paused.")


@reshard.command(name="halt")
def halt_command(
    environment: Annotated[str, typer.Option("--env", help="The deployed environment.")], *, as_json: AsJson = False
) -> None:
    """Stop the executions of a deployed environment before its stacks are removed, as `make destroy` does.

    Resizes keep their progress, and a later deployment continues them. If the stacks stay, the executions start again
    within 15 minutes; to stop a resize for longer, pause it.
    """
    found = environment_named(environment)
    if found.unknown and not found.resources("Reshard", "AWS::StepFunctions::StateMachine"):
        raise CommandError(f"there is no stack {found.stack('Reshard')}, so nothing was stopped{found.unknown}")
    with on_interrupt(lambda: "some executions may be stopped: run it again for the others"):
        stopped = halt(found.client("stepfunctions"), environment, time.sleep)
    if as_json:
        typer.echo(json.dumps({"stopped": stopped}))
    else:
        typer.echo(f"{len(stopped)} executions were stopped" if len(stopped) != 1 else "1 execution was stopped")


def _wanted(entity: str, partition: str | None, index: str | None, *, everything: bool) -> Scope:
    if everything and (partition is not None or index is not None):
        raise CommandError("--all changes every partition of the entity: leave PARTITION and --index out")
    return named_scope(entity, partition, index)


def _each(
    resharder: Resharder, scopes: Iterable[Scope], act: Callable[[Scope], Status], *, skip: str | None = None
) -> tuple[list[Status], list[str]]:
    """Act on each scope. Return what became of them, and refusals as lines; a refusal for the reason `skip` is none."""
    done, refused = [], []
    for scope in scopes:
        try:
            done.append(act(scope))
        except ReshardRefusedError as error:
            if error.reason == skip:
                done.append(resharder.status(scope))
            elif error.reason in _WATCHED:
                refused.append(f"{error}; {_WATCH.format(arguments(resharder.status(scope)))}")
            else:
                refused.append(f"{error} ({error.reason})")
    return done, refused


def _raise(refused: Sequence[str]) -> None:
    for each in refused[:-1]:
        typer.echo(f"error: {each}", err=True)
    if refused:
        raise CommandError(refused[-1])


def _print(seen: Sequence[Status], *, as_json: bool, many: bool, describe: Callable[[Status], str] = line) -> None:
    if not as_json:
        for each in seen:
            typer.echo(describe(each))
    elif many or seen:
        values = [each.as_dict() for each in seen]
        typer.echo(json.dumps(values if many else values[0]))


def _mention_own(own: Sequence[Scope]) -> None:
    if own:
        which = "1 partition with a count of its own stays as it is"
        if len(own) > 1:
            which = f"{len(own):,} partitions with counts of their own stay as they are"
        typer.echo(f"{which}: --all changes every partition", err=True)


def _watch(backend: Backend, poll: Callable[[], Sequence[Status]], *, as_json: bool) -> None:
    def over(seen: Sequence[Status]) -> bool:
        return not any(each.busy or each.back_to is not None for each in seen)

    last = ""

    def print_json(seen: Sequence[Status]) -> None:
        nonlocal last
        values = json.dumps([each.as_dict() for each in seen])
        if values != last:
            last = values
            typer.echo(values)

    seen = watch_until(backend, poll, over, show=print_json if as_json else None)
    if not as_json:
        _print(seen, as_json=False, many=True)
        if not seen:
            typer.echo("nothing is changing any more")
