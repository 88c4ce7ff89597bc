"""Runs checks one after another, within a budget, and removes their scratch resources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dynashard_checks.verify_aws.check import Check, Outcome, Verdict, unclear
from dynashard_checks.verify_aws.context import Context
from dynashard_tools.failure import CommandError

LOCAL_ONLY: Final = "a local AWS answered, and only AWS can show this"
NO_TOKEN: Final = "no token was given: set DYNASHARD_TOKEN to a bearer token of the environment's issuer"  # noqa: S105
NO_API: Final = "the environment has no API: deploy it, or leave --no-deploy out"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a check, and how long it took."""

    check: Check
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """What a run found.

    Attributes:
        results: of the checks that ran.
        not_run: checks that Ctrl-C prevented.
        left: scratch resources that could not be removed, each with the reason.
    """

    results: Sequence[Result]
    not_run: Sequence[Check]
    left: Sequence[str]

    def count(self, verdict: Verdict) -> int:
        """Return how many checks have a verdict."""
        return sum(result.outcome.verdict is verdict for result in self.results)


def select(checks: Sequence[Check], names: Sequence[str], budget: float) -> list[Check]:
    """Return the named checks, or all that are not optional.

    Raises:
        CommandError: there is no check of a name, or together they may cost more than the budget in dollars.
    """
    known = {check.name: check for check in checks}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CommandError(f"there is no check {unknown[0]}; --list shows them")
    chosen = [known[name] for name in dict.fromkeys(names)] or [check for check in checks if not check.optional]
    cost = total_dollars(chosen)
    if cost > budget:
        raise CommandError(
            f"the checks may cost ${cost:,.2f}, and the budget is ${budget:,.2f}: choose fewer with --check, or raise "
            "--budget"
        )
    return chosen


def total_dollars(checks: Sequence[Check]) -> float:
    """Return the most that checks can cost together, in cents that have begun."""
    return round(sum(check.dollars for check in checks) + 0.0049, 2)


def run_checks(checks: Sequence[Check], context: Context, *, local: bool, has_api: bool) -> Report:
    """Run checks, and remove what they created, also after Ctrl-C.

    Args:
        checks: which.
        context: what they work with.
        local: whether a local AWS answers.
        has_api: whether the environment's API is deployed.
    """
    results: list[Result] = []
    try:
        for check in checks:
            begun = context.clock.now()
            context.say(f"{check.name}: {check.fact}")
            outcome = _excluded(check, context, local=local, has_api=has_api) or _outcome(check, context)
            results.append(Result(check, outcome, round(context.clock.now() - begun, 1)))
            # What cannot be removed now is tried again at the end.
            context.scratch.remove_all()
            context.say(f"  {outcome.verdict.value}")
    except KeyboardInterrupt:
        context.say("interrupted: removing the scratch resources")
    left = _remove(context)
    return Report(results, checks[len(results) :], left)


def _excluded(check: Check, context: Context, *, local: bool, has_api: bool) -> Outcome | None:
    if local and not check.local:
        return unclear(LOCAL_ONLY)
    if check.needs_api and not has_api:
        return unclear(NO_API)
    if check.needs_token and not context.environment.token:
        return unclear(NO_TOKEN)
    return None


def _outcome(check: Check, context: Context) -> Outcome:
    """Run a check; what keeps it from seeing anything is its outcome, not the end of the run."""
    try:
        return check.run(context)
    except Exception as error:  # noqa: BLE001 - a defect of one check must not leave its tables, nor prevent the others
        return unclear(f"{type(error).__name__}: {error}")


def _remove(context: Context) -> list[str]:
    """Remove the scratch resources; a second Ctrl-C leaves the rest, which is listed."""
    try:
        return context.scratch.remove_all()
    except KeyboardInterrupt:
        return [f"{what}: interrupted" for what in context.scratch.present]
