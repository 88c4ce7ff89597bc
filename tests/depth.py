"""The depth of tests: few examples and parameter sets by default, all of them if `TEST_PROFILE` is `deep`.

By default Hypothesis draws the same examples in every run, so `make test` never fails at random. `make test-deep` draws
other examples each time, and prints the seed.
"""

import os
from collections.abc import Sequence
from typing import Final, Literal
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

Profile = Literal["default", "deep"]
VARIABLE: Final = "TEST_PROFILE"
FEWEST: Final = 5
FRACTION: Final = 24
"""By default a test draws a 24th of its examples, but at least five."""
UNSHRUNK: Final = "dynashard-unshrunk"
"""A profile of Hypothesis that reports a failing example as it was found, rather than a small one."""
_OF_FAILURES: Final = {Phase.shrink, Phase.explain}


def profile() -> Profile:
    """Return the profile that the environment names. Raises `ValueError` if there is no such profile."""
    named = os.environ.get(VARIABLE, "default")
    if named == "default":
        return "default"
    if named == "deep":
        return "deep"
    raise ValueError(f"{VARIABLE} is {named!r}; it must be default or deep.")


def examples(deep: int, *, default: int | None = None) -> int:
    """Return how many examples, schedules or chunks a test takes.

    Args:
        deep: how many with the profile `deep`.
        default: how many otherwise, if a 24th is more than the test needs.
    """
    if profile() == "deep":
        return deep
    return max(min(deep, FEWEST), deep // FRACTION) if default is None else default


_constants_of_loaded_modules: Final = providers._get_local_constants


def load_profile() -> None:
    """Set up Hypothesis for this run."""
    chosen = profile()
    # Hypothesis also draws constants of the modules that are loaded so far, which depend on the tests that ran before.
    deep = chosen == "deep"
    providers._get_local_constants = _constants_of_loaded_modules if deep else Constants
    settings.register_profile(
        f"dynashard-{chosen}",
        max_examples=examples(settings.get_profile("default").max_examples),
        # A deadline would fail tests on a busy machine.
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=chosen == "default",
    )
    # `make mutants` asks whether a test fails, not why.
    settings.register_profile(UNSHRUNK, settings.get_profile(f"dynashard-{chosen}"), phases=set(Phase) - _OF_FAILURES)
    settings.load_profile(f"dynashard-{chosen}")


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that only the profile `deep` runs, by the markers `deep` and `sampled`.

    The ids decide which parameter sets of a sampled test run. So every process chooses the same ones, and the choice
    does not depend on their order.
    """
    if profile() == "deep":
        return []
    grids: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            grids.setdefault(item.nodeid.partition("[")[0], []).append(item)
    sampled = [item for grid in grids.values() for item in sorted(grid, key=_drawn)[_share(grid) :]]
    return [item for item in items if item.get_closest_marker("deep")] + sampled


def _drawn(item: pytest.Item) -> tuple[int, str]:
    return crc32(item.nodeid.encode()), item.nodeid


def _share(grid: Sequence[pytest.Item]) -> int:
    marker = grid[0].get_closest_marker("sampled")
    assert marker is not None
    [one_of] = marker.args
    return -(-len(grid) // int(one_of))
