"""The depth of tests: few examples and parameter sets by default, all of them if `TEST_PROFILE` is `deep`.

By default Hypothesis draws the same examples in every run, so `make test` never fails at random. `make test-deep` draws
other examples each time, and prints the seed.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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
FACE: Final = "face"
"""The parameter by which a test runs under both faces of the layer: see tests/engine/faces.py."""
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
    """Return the tests that only the profile `deep` runs, by the markers `deep`, `one_face` and `sampled`.

    Parameters and ids decide which tests run. So every process chooses the same ones, in whatever order it has them.
    CI runs everything under both faces.
    """
    if profile() == "deep":
        return []
    dropped = {item for item in items if item.get_closest_marker("deep")}
    for faces in [] if os.environ.get("CI") else _grouped(items, "one_face", _without_face):
        dropped.update(sorted(faces, key=_drawn)[1:])
    left = [item for item in items if item not in dropped]
    for grid in _grouped(left, "sampled", _function):
        dropped.update(set(grid) - set(_sample(grid)))
    return [item for item in items if item in dropped]


def _grouped(
    items: Sequence[pytest.Item], marker: str, key: Callable[[pytest.Item], object]
) -> Iterable[list[pytest.Item]]:
    groups: dict[object, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker(marker):
            groups.setdefault(key(item), []).append(item)
    return groups.values()


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _without_face(item: pytest.Item) -> tuple[object, ...]:
    return _function(item), frozenset(value for value in _values(item) if value[0] != FACE)


def _sample(grid: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return one of n tests, or more until each value of each dimension is among them: a greedy cover.

    The values of one dimension alone are not covered, because that would be all of them. The face does not count as
    one.
    """
    values = {item: _values(item) for item in grid}
    marker = grid[0].get_closest_marker("sampled")
    assert marker is not None
    fewest = -(-len(grid) // int(marker.args[0]))
    missing = set().union(*values.values())
    sizes = Counter(dimension for dimension, _ in missing)
    crossed = sum(size > 1 for dimension, size in sizes.items() if dimension != FACE) > 1
    left, sample = sorted(grid, key=_drawn), list[pytest.Item]()
    while left and (len(sample) < fewest or (crossed and missing)):
        best = max(left, key=lambda item: len(values[item] & missing))
        left.remove(best)
        sample.append(best)
        missing -= values[best]
    return sample


def _values(item: pytest.Item) -> frozenset[tuple[int | str, str]]:
    """Return the id of the value of each dimension: of each list of parameters, and of the face.

    The ids of one list have several dimensions if the marker names what separates them: `sampled(3, separator=" ")`.
    """
    spec = getattr(item, "callspec", None)
    if spec is None:
        return frozenset()
    face = spec.params.get(FACE)
    # pytest only has the parts of an id here. Parts may contain its separator.
    parts = spec._idlist
    marker = item.get_closest_marker("sampled")
    if marker is not None and "separator" in marker.kwargs:
        parts = [each for part in parts for each in part.split(marker.kwargs["separator"])]
    return frozenset((FACE if part == face else number, part) for number, part in enumerate(parts))


def _drawn(item: pytest.Item) -> tuple[int, str]:
    return crc32(item.nodeid.encode()), item.nodeid
