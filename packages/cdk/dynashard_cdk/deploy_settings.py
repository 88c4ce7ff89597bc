"""Settings of how a release replaces the one before, and of what it may cost, with their defaults, bounds and units."""

import math
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from dynashard_cdk.sections import Section

MOST_MINUTES: Final = 2880
"""Longest shift of traffic that CodeDeploy carries out."""
LEAST_MINUTES: Final = 5
"""Shortest step: the period of the alarms that judge."""


class CanarySettings(Section):
    """How the traffic of the API and of direct invocation moves to a new release, while alarms judge it."""

    way: Literal["canary", "linear"] = "canary"
    """`canary`: a share, and the rest after one step. `linear`: one more share with each step."""
    percent: int = Field(default=10, ge=1, le=50)
    """Share of the requests that a step adds."""
    minutes: int = Field(default=20, ge=LEAST_MINUTES, le=MOST_MINUTES)
    """Length of a step. The slowest of the alarms that judge takes 15 minutes."""

    @property
    def steps(self) -> int:
        """How many steps pass before all traffic has moved."""
        return 1 if self.way == "canary" else math.ceil(100 / self.percent) - 1

    @model_validator(mode="after")
    def _ends_in_time(self) -> Self:
        minutes = self.steps * self.minutes
        if minutes > MOST_MINUTES:
            raise ValueError(
                f"{self.steps} steps of {self.minutes} minutes take {minutes} minutes, and CodeDeploy takes at most "
                f"{MOST_MINUTES}: raise percent, or lower minutes"
            )
        return self


class DeploySettings(Section):
    """How a release replaces the one before."""

    canary: CanarySettings | None = None
    """Move traffic in steps; None to move it at once."""


Percent = Annotated[int, Field(ge=1, le=1000)]
Email = Annotated[str, Field(pattern=r"^[^\s@:/]+@[^\s@:/.]+(\.[^\s@:/.]+)+$")]


class BudgetSettings(Section):
    """A budget of AWS for the environment's resources, which writes e-mails."""

    dollars_a_month: int = Field(ge=1)
    percents: tuple[Percent, ...] = Field(default=(80, 100), min_length=1, max_length=4)
    """Spent shares of the amount that are reported. A forecast above the amount is reported too."""
    addresses: tuple[Email, ...] = Field(min_length=1, max_length=10)
    """Who gets the e-mails; at most ten for a notification."""

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        for name in ("percents", "addresses"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} has a value twice: name it once")
        return self
