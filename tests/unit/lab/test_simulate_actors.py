"""Actors take turns in virtual time, in an order that depends on nothing else."""

import time
from contextvars import ContextVar

import pytest

from dynashard_lab.simulate.actors import Actors

pytestmark = pytest.mark.unit


def test_actors_wake_in_the_order_of_their_times() -> None:
    actors, seen = Actors(), list[tuple[str, float]]()

    def body(name: str, pause: float) -> None:
        for _ in range(3):
            actors.sleep(pause)
            seen.append((name, actors.seconds))

    actors.spawn(lambda: body("slow", 2.0))
    actors.spawn(lambda: body("fast", 1.5), after=0.25)
    actors.run()

    assert seen == [("fast", 1.75), ("slow", 2), ("fast", 3.25), ("slow", 4), ("fast", 4.75), ("slow", 6)]


def test_virtual_hours_take_no_time() -> None:
    actors = Actors()
    actors.spawn(lambda: actors.sleep(86_400))
    begun = time.monotonic()

    actors.run()

    assert actors.seconds == 86_400
    assert time.monotonic() - begun < 5


def test_run_stops_actors_at_its_end() -> None:
    actors, cleaned = Actors(), list[float]()

    def forever() -> None:
        try:
            while True:
                actors.sleep(1)
        finally:
            cleaned.append(actors.seconds)

    actors.spawn(forever)
    actors.run(10)

    assert actors.seconds == 10
    assert cleaned == [10]


def test_stopped_run_can_be_followed_by_another() -> None:
    actors, seen = Actors(), list[float]()
    actors.spawn(lambda: actors.sleep(100))
    actors.run(10)

    actors.spawn(lambda: seen.append(actors.seconds))
    actors.run()

    assert seen == [10]


def test_actor_can_stop_the_run() -> None:
    actors = Actors()

    def stop() -> None:
        actors.sleep(3)
        actors.stop()

    actors.spawn(lambda: actors.sleep(100))
    actors.spawn(stop)
    actors.run()

    assert actors.seconds == 3


def test_gathered_bodies_sleep_at_the_same_time() -> None:
    actors, seen = Actors(), list[float]()

    def body() -> None:
        actors.gather([lambda: actors.sleep(5), lambda: actors.sleep(3)])
        seen.append(actors.seconds)

    actors.spawn(body)
    actors.run()

    assert seen == [5]


def test_gathered_bodies_have_the_context_of_their_parent() -> None:
    actors, seen = Actors(), list[str]()
    variable: ContextVar[str] = ContextVar("variable", default="none")

    def body() -> None:
        variable.set("mine")
        actors.gather([lambda: seen.append(variable.get())])

    actors.spawn(body)
    actors.spawn(lambda: seen.append(variable.get()))
    actors.run()

    assert sorted(seen) == ["mine", "none"]


def test_work_that_sleeps_is_relieved_by_another_actor() -> None:
    actors, begun, ended = Actors(), list[float](), list[float]()

    def serve() -> None:
        while len(begun) < 4:
            actors.sleep(1)
            if not actors.with_relief(serve, work):
                return

    def work() -> None:
        begun.append(actors.seconds)
        if len(begun) == 2:
            actors.sleep(10)
        ended.append(actors.seconds)

    actors.spawn(serve)
    actors.run()

    assert begun == [1, 2, 3, 4]
    assert ended == [1, 3, 4, 12]


def test_error_of_an_actor_ends_the_run() -> None:
    actors = Actors()

    def fail() -> None:
        actors.sleep(1)
        raise ValueError("wrong")

    actors.spawn(fail)
    actors.spawn(lambda: actors.sleep(100))

    with pytest.raises(ValueError, match="wrong"):
        actors.run()
    assert actors.seconds == 1
