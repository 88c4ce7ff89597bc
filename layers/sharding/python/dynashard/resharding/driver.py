"""The loop of a process that carries out resizes, several at a time."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final

from dynashard.errors import DynashardError
from dynashard.resharding.resharder import Resharder

_POLL: Final = 1.0
"""Seconds between polls for new resizes."""
_SLICE: Final = 2.0
"""Seconds that a task is worked on at a time."""
_LONGEST_BACKOFF: Final = 60.0
_TRIES: Final = 6
"""Failures in a row after which a resize is paused, if the last one was of a kind that another try does not cure."""
_WORKERS: Final = 4
"""Tasks that are worked on at a time."""


@dataclass
class _Driven:
    """A record whose resize is under way."""

    key: str
    tasks: deque[int] = field(default_factory=deque)
    running: dict[Future[bool], int] = field(default_factory=dict)
    concurrency: int = 1
    due: float = 0.0
    failures: int = 0
    done: bool = False


def drive(
    resharder: Resharder,
    *,
    stop: Callable[[], bool],
    sleep: Callable[[float], None],
    log: Callable[[str], None] = lambda _: None,
    until_idle: bool = False,
) -> None:
    """Carry out all resizes until `stop` returns true, which is called about once a second.

    It may be killed at any moment; the next driver continues. After an error it logs a line and tries again, each time
    after a longer pause, up to a minute. If another try does not cure the error, such as that of a damaged topology
    record, it pauses the resize with the reason after some tries, so that `status` shows it. A few tasks run at a time,
    over all resizes.

    With `until_idle` it also ends when no resize is under way any more, except paused ones.

    Cost: 1 round trip and 1 read unit a family every second while nothing changes.
    """
    driven: dict[str, _Driven] = {}
    polled, failures = float("-inf"), 0
    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="resharding") as pool:
        while not stop():
            now = resharder.runtime.clock()
            if not polled <= now < polled + (_backoff(failures) if failures else _POLL):
                polled, failures = now, 0 if _poll(resharder, driven, log) else failures + 1
            for record in list(driven.values()):
                _collect(resharder, record, now, log)
                _advance(resharder, pool, record, now, log)
            if until_idle and not failures and all(record.done for record in driven.values()):
                return
            running = [future for record in driven.values() for future in record.running]
            if running:
                wait(running, timeout=_POLL, return_when=FIRST_COMPLETED)
            else:
                sleep(_pause(driven, now))


def _poll(resharder: Resharder, driven: dict[str, _Driven], log: Callable[[str], None]) -> bool:
    """Begin with new resizes and leave those that have ended; whether they could be read."""
    try:
        keys = set(resharder.poll())
    except DynashardError as error:
        log(f"the topology cannot be read: {error}")
        return False
    for key in keys - driven.keys():
        driven[key] = _Driven(key)
    for key in driven.keys() - keys:
        if not driven[key].running:
            del driven[key]
    return True


def _collect(resharder: Resharder, record: _Driven, now: float, log: Callable[[str], None]) -> None:
    """Collect the results of tasks that have ended."""
    for future in [future for future in record.running if future.done()]:
        task = record.running.pop(future)
        try:
            if not future.result():
                record.tasks.append(task)
        except Exception as error:  # noqa: BLE001 - the other resizes continue after any error
            _failed(record, now, f"task {task} of {record.key}: {error!r}", log)
            _give_up(resharder, record, error, log)
        else:
            record.failures = 0


def _advance(
    resharder: Resharder, pool: ThreadPoolExecutor, record: _Driven, now: float, log: Callable[[str], None]
) -> None:
    if now < record.due:
        return
    if not record.running and not record.tasks:
        try:
            step = resharder.advance(record.key)
        except Exception as error:  # noqa: BLE001 - the other resizes continue after any error
            _failed(record, now, f"{record.key}: {error!r}", log)
            _give_up(resharder, record, error, log)
            return
        record.concurrency, record.done = step.concurrency, step.kind == "done"
        record.tasks.extend(step.tasks)
        # A paused resize is polled as often as one that waits.
        pause = max(step.seconds, 0.0)
        record.due = now if step.kind == "work" else now + (pause if step.steady else min(pause, _POLL))
        if record.done:
            record.due = now + _POLL
    while record.tasks and len(record.running) < record.concurrency:
        task = record.tasks.popleft()
        record.running[pool.submit(resharder.work, record.key, task, seconds=_SLICE)] = task


def _failed(record: _Driven, now: float, message: str, log: Callable[[str], None]) -> None:
    record.failures += 1
    record.tasks.clear()
    record.due = now + _backoff(record.failures)
    log(message)


def _give_up(resharder: Resharder, record: _Driven, error: Exception, log: Callable[[str], None]) -> None:
    """Pause a resize that has failed too often, with the reason, if another try does not cure it."""
    if record.failures < _TRIES or not isinstance(error, DynashardError) or error.transient:
        return
    try:
        resharder.pause(resharder.scope(record.key), error=str(error))
    except DynashardError as refused:
        log(f"{record.key} cannot be paused: {refused}")
        return
    record.failures = 0
    log(f"{record.key}: paused, because {error}")


def _backoff(failures: int) -> float:
    return min(_LONGEST_BACKOFF, 2.0 ** min(failures, 10) / 2)


def _pause(driven: dict[str, _Driven], now: float) -> float:
    return max(0.01, min([_POLL, *(record.due - now for record in driven.values())]))
