"""How deep the tests look: few examples by default, many where `TEST_PROFILE` is `deep`.

By default Hypothesis draws the same examples in every run, so that `make test` never fails by chance. `deep` draws
others each time, and prints the seed: `make test-deep`.
"""

import os
from typing import Final, Literal

from hypothesis import HealthCheck, settings

Profile = Literal["default", "deep"]
VARIABLE: Final = "TEST_PROFILE"
FEWEST: Final = 5
FRACTION: Final = 4
"""By default a test draws the fourth part of its examples, and five if it has as many."""


def profile() -> Profile:
    """Return the profile that the environment names. Raises `ValueError` if there is no such profile."""
    named = os.environ.get(VARIABLE, "default")
    if named == "default":
        return "default"
    if named == "deep":
        return "deep"
    raise ValueError(f"{VARIABLE} is {named!r}; it must be default or deep.")


def examples(deep: int) -> int:
    """Return how many examples, schedules or chunks a test takes.

    Args:
        deep: how many with the profile `deep`.
    """
    return deep if profile() == "deep" else max(min(deep, FEWEST), deep // FRACTION)


def load_profile() -> None:
    """Set up Hypothesis for this run."""
    chosen = profile()
    settings.register_profile(
        f"dynashard-{chosen}",
        max_examples=examples(settings.get_profile("default").max_examples),
        # No example has to be quick: a deadline would make a busy machine fail a test.
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=chosen == "default",
    )
    settings.load_profile(f"dynashard-{chosen}")
