"""Waiting for a change, and watching what is changing, until somebody presses Ctrl-C."""

from collections.abc import Callable, Sequence

from dynashard.resharding import Resharder, Status
from tools.connection import Backend
from tools.failure import CommandError, CommandInterruptedError
from tools.reshard.scopes import arguments
from tools.reshard.watch import Show, Watch, showing
from tools.reshard.words import shards


def wait_for(backend: Backend, resharder: Resharder, begun: Sequence[Status], to: int) -> Sequence[Status]:
    """Wait until all of these changes have brought their count.

    Raises:
        CommandError: one was called off, or has failed.
        CommandInterruptedError: Ctrl-C; the changes go on.
    """
    scopes = [resharder.scope(each.key) for each in begun]

    def look() -> Sequence[Status]:
        return [resharder.status(scope) for scope in scopes]

    def over(seen: Sequence[Status]) -> bool:
        for each in seen:
            _give_up(each, to)
        return all(each.target is None and each.count == to for each in seen)

    return watch_until(backend, look, over)


def _give_up(status: Status, to: int) -> None:
    """End the waiting for what will not come by itself.

    Raises:
        CommandError: the change was called off, or has failed.
    """
    name = arguments(status)
    if status.back_to is not None or (status.target is None and status.count != to):
        back = status.count if status.back_to is None else status.back_to
        raise CommandError(f"{name}: the change to {shards(to)} was called off; it ends with {shards(back)}")
    if status.paused and status.error:
        raise CommandError(f"{name}: {status.error}. When that is mended: `dynashard reshard resume {name}`")


def watch_until(
    backend: Backend,
    look: Callable[[], Sequence[Status]],
    over: Callable[[Sequence[Status]], bool],
    *,
    show: Show | None = None,
) -> Sequence[Status]:
    """Watch until it is over.

    Raises:
        CommandInterruptedError: Ctrl-C; the changes go on.
    """
    try:
        if show is not None:
            return Watch(look, show, worker=backend.worker).until(over)
        with showing() as shown:
            return Watch(look, shown, worker=backend.worker).until(over)
    except KeyboardInterrupt:
        raise CommandInterruptedError(
            "interrupted; what is changing goes on. `dynashard reshard status --watch` watches it, "
            "`dynashard reshard abort` takes it back"
        ) from None
