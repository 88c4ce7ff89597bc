"""`dynashard reshard`."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Final

import typer

from domain import ENTITIES
from dynashard.errors import ReshardRefusedError
from dynashard.resharding import Resharder, Scope, Status
from dynashard.resharding.checks import check_possible
from tools.connection import Backend, open_backend
from tools.entities import names_beginning
from tools.failure import CommandError
from tools.reshard.scopes import all_scopes, arguments, busy_of, named_scope, own_scopes, require_items
from tools.reshard.waiting import wait_for, watch_until
from tools.reshard.watch import tell_no_worker
from tools.reshard.words import line, overdue, reached, shards

reshard = typer.Typer(
    help="Change shard counts while traffic flows, and watch it.", no_args_is_help=True, add_completion=False
)

_REMEDIES: Final = {
    "running": "`dynashard reshard status {0} --watch` watches it",
    "not_swept": "`dynashard reshard status {0} --watch` watches it",
}
"""What else to do about a refusal; most say it themselves."""

Entity = Annotated[
    str,
    typer.Argument(
        help="An entity: " + ", ".join(each.path for each in ENTITIES) + ".",
        autocompletion=names_beginning,
    ),
]
AnyEntity = Annotated[
    str | None,
    typer.Argument(help="An entity; everything that is changing if left out.", autocompletion=names_beginning),
]
Partition = Annotated[
    str | None,
    typer.Argument(help="A logical partition, such as abc; all without a count of their own if left out."),
]
Index = Annotated[str | None, typer.Option("--index", help="Change the count of this index instead.")]
Environment = Annotated[str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
All = Annotated[bool, typer.Option("--all", help="Every partition of the entity, those with their own count too.")]


@reshard.command()
def start(
    entity: Entity,
    partition: Partition = None,
    index: Index = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="Write units a second that moving items may take.")
    ] = None,
    environment: Environment = None,
    *,
    to: Annotated[int, typer.Option("--to", help="The new count: a power of two up to 1024.")],
    everything: All = False,
    survey: Annotated[bool, typer.Option(help="Count first how many items will move, for the progress bar.")] = True,
    create: Annotated[bool, typer.Option("--create", help="Change the count of a PARTITION without items.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the new count is stable.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask for another shard count. A worker carries it out; with --wait this returns when the count is stable.

    What is stable then, and what goes on in the background, is said. A PARTITION without items is refused, because its
    name may be mistyped; --create changes the count of one that is still to be filled.

    Ctrl-C ends the waiting, not the change. Exit status: 0 when the change is asked for, with --wait when it is stable.
    """
    wanted = _wanted(entity, partition, index, everything=everything)
    backend = open_backend(environment)
    resharder = backend.resharder()
    if partition is not None and not create:
        check_possible(wanted, to, budget)
        require_items(backend, entity, partition)
    chosen = all_scopes(backend, resharder, entity) if everything else [wanted]

    def begin(scope: Scope) -> Status:
        return resharder.start(scope, to, budget=budget, survey=survey)

    begun, refused = _each(resharder, chosen, begin, skip="same_count" if everything else None)
    if not wait:
        _tell(begun, as_json=as_json, many=everything)
        if not as_json and begun:
            typer.echo(f"`dynashard reshard status {arguments(begun[-1])} --watch` watches it")
    if not everything and partition is None and index is None and not as_json:
        _mention_own(own_scopes(backend, resharder, wanted.entity))
    if wait:
        ended = wait_for(backend, resharder, begun, to)
        if as_json:
            _tell(ended, as_json=True, many=everything)
        for each in () if as_json else ended:
            typer.echo(reached(each))
    _refuse(refused)


@reshard.command()
def status(
    entity: AnyEntity = None,
    partition: Partition = None,
    index: Index = None,
    environment: Environment = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Go on looking until nothing is under way.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how far changes have come; of an entity, a partition or an index also when none is under way.

    Exit status: 0, whether something is under way or not.
    """
    if entity is None and index is not None:
        raise CommandError("--index names an index of an entity: give ENTITY")
    scope = None if entity is None else named_scope(entity, partition, index)
    backend = open_backend(environment)
    resharder = backend.resharder()

    def look() -> Sequence[Status]:
        if scope is None or entity is None:
            return resharder.busy()
        here = [resharder.status(scope)]
        others = busy_of(resharder, entity) if scope.whole_family else []
        return here + [each for each in others if each.key != scope.key]

    if watch:
        _watch(backend, look, as_json=as_json)
        return
    seen = look()
    _tell(seen, as_json=as_json, many=True)
    if not as_json and not seen:
        typer.echo("nothing is changing")
    if any(overdue(each, time.time()) for each in seen):
        tell_no_worker(backend.worker)


@reshard.command()
def abort(
    entity: Entity,
    partition: Partition = None,
    index: Index = None,
    environment: Environment = None,
    *,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Take a change back: before it moves, at once; from then on it is finished, swept, and changed back."""
    done, refused = _told(entity, partition, index, environment, Resharder.abort, everything=everything)
    if as_json:
        _tell(done, as_json=True, many=everything)
    for each in () if as_json else done:
        if each.back_to is None:
            typer.echo(f"{arguments(each)}: called off; {shards(each.count)} as before")
        else:
            typer.echo(
                f"{arguments(each)}: items are moving already, so that it cannot just stop. It is brought to its end, "
                f"swept, and then changed back to {shards(each.back_to)}; "
                f"`dynashard reshard status {arguments(each)} --watch` watches it"
            )
    _refuse(refused)


@reshard.command()
def pause(
    entity: Entity,
    partition: Partition = None,
    index: Index = None,
    environment: Environment = None,
    *,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Let a change stand still until it is resumed. Nothing is lost, and traffic goes on."""
    done, refused = _told(entity, partition, index, environment, Resharder.pause, everything=everything)
    _tell(done, as_json=as_json, many=everything)
    _refuse(refused)


@reshard.command()
def resume(
    entity: Entity,
    partition: Partition = None,
    index: Index = None,
    environment: Environment = None,
    *,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Let a paused change go on, also one that was paused by an error."""
    done, refused = _told(entity, partition, index, environment, Resharder.resume, everything=everything)
    _tell(done, as_json=as_json, many=everything)
    _refuse(refused)


def _wanted(entity: str, partition: str | None, index: str | None, *, everything: bool) -> Scope:
    if everything and (partition is not None or index is not None):
        raise CommandError("--all is every partition of the entity: leave PARTITION and --index out")
    return named_scope(entity, partition, index)


def _told(
    entity: str,
    partition: str | None,
    index: str | None,
    environment: str | None,
    act: Callable[[Resharder, Scope], Status],
    *,
    everything: bool,
) -> tuple[list[Status], list[str]]:
    """What became of a change, or of all changes of an entity, after it was told something; and refusals."""
    wanted = _wanted(entity, partition, index, everything=everything)
    resharder = open_backend(environment).resharder()
    chosen = [resharder.scope(each.key) for each in busy_of(resharder, entity)] if everything else [wanted]
    if not chosen:
        raise CommandError(f"no change of {wanted.family} is under way")
    return _each(resharder, chosen, lambda scope: act(resharder, scope))


def _each(
    resharder: Resharder, scopes: Iterable[Scope], act: Callable[[Scope], Status], *, skip: str | None = None
) -> tuple[list[Status], list[str]]:
    """Do something about each; those refused as lines. Where the reason is `skip`, there is nothing to do."""
    done, refused = [], []
    for scope in scopes:
        try:
            done.append(act(scope))
        except ReshardRefusedError as error:
            here = resharder.status(scope) if error.reason == skip or error.reason in _REMEDIES else None
            if here is not None and error.reason == skip:
                done.append(here)
                continue
            remedy = _REMEDIES[error.reason].format(arguments(here)) if here is not None else ""
            refused.append(f"{error}; {remedy}" if remedy else f"{error} ({error.reason})")
    return done, refused


def _refuse(refused: Sequence[str]) -> None:
    for each in refused[:-1]:
        typer.echo(f"error: {each}", err=True)
    if refused:
        raise CommandError(refused[-1])


def _tell(seen: Sequence[Status], *, as_json: bool, many: bool) -> None:
    if as_json:
        told = [each.as_dict() for each in seen]
        if many or told:
            typer.echo(json.dumps(told if many else told[0]))
        return
    for each in seen:
        typer.echo(line(each))


def _mention_own(own: Sequence[Scope]) -> None:
    if own:
        which = "1 partition with a count of its own stays" if len(own) == 1 else f"{len(own):,} partitions with counts"
        which += "" if len(own) == 1 else " of their own stay"
        typer.echo(f"{which} as it is: --all changes every partition", err=True)


def _watch(backend: Backend, look: Callable[[], Sequence[Status]], *, as_json: bool) -> None:
    def over(seen: Sequence[Status]) -> bool:
        return not any(each.busy or each.back_to is not None for each in seen)

    last: list[str] = []

    def print_json(seen: Sequence[Status]) -> None:
        told = json.dumps([each.as_dict() for each in seen])
        if [told] != last:
            last[:] = [told]
            typer.echo(told)

    seen = watch_until(backend, look, over, show=print_json if as_json else None)
    if not as_json:
        _tell(seen, as_json=False, many=True)
        if not seen:
            typer.echo("nothing is changing any more")
