"""Stops what carries out resizes in an account, so that its stack can be removed.

Step Functions removes a state machine only when none of its executions runs, and one that waits may wait for long.
Until then its name, which is fixed, cannot be used again.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dynashard_tools.environments import aws_errors
from dynashard_tools.failure import CommandError

ROUNDS: Final = 30
PAUSE_SECONDS: Final = 1.0
"""Between two lists of executions, which are eventually consistent."""
CAUSE: Final = "the stack is being removed"


def machine_name(environment: str) -> str:
    """Return the name of the state machine of an environment."""
    return f"dynashard-{environment}-reshard"


def halt(client: Any, environment: str, sleep: Callable[[float], None]) -> list[str]:
    """Stop the running executions of an environment, and return their names; none if it has no state machine.

    All progress is in the topology table, so a later deployment continues the resizes.

    Args:
        client: boto3's client of Step Functions.
        environment: the deployed environment.
        sleep: waits between two rounds.

    Raises:
        CommandError: executions still run at the end, or AWS refuses a call.

    Cost: 1 call for every 1,000 state machines and executions, and 1 for each running execution.
    """
    stopped: dict[str, None] = {}
    with aws_errors(f"the executions of {environment} cannot be stopped"):
        machines = _all(client.list_state_machines, "stateMachines")
        arns = [each["stateMachineArn"] for each in machines if each["name"] == machine_name(environment)]
        for _ in range(ROUNDS):
            running = [each for arn in arns for each in _running(client, arn)]
            if not running:
                return list(stopped)
            for each in running:
                client.stop_execution(executionArn=each["executionArn"], cause=CAUSE)
                stopped[each["name"]] = None
            sleep(PAUSE_SECONDS)
    raise CommandError(f"executions of {machine_name(environment)} still run: something starts new ones; try again")


def _running(client: Any, machine: str) -> Iterator[Mapping[str, Any]]:
    try:
        yield from _all(client.list_executions, "executions", stateMachineArn=machine, statusFilter="RUNNING")
    except client.exceptions.StateMachineDoesNotExist:
        return


def _all(operation: Callable[..., Mapping[str, Any]], name: str, **request: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the members of all pages of a list."""
    page = operation(maxResults=1000, **request)
    yield from page[name]
    while page.get("nextToken"):
        page = operation(maxResults=1000, nextToken=page["nextToken"], **request)
        yield from page[name]
