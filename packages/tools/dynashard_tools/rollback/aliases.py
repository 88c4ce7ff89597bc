"""Reads the functions of a deployed environment with their versions, and changes their aliases."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from dynashard_cdk.release import LIVE, RELEASES, UNDERSTANDS
from dynashard_tools.environments import Environment, aws_errors
from dynashard_tools.failure import CommandError
from dynashard_tools.rollback.releases import Function, Move, Version

PARTS: Final = ("Api", "Commands", "Writer", "Changes", "Reshard", "Prewarm")
"""The stacks that have functions: first those whose callers wait."""
WITHDRAWN: Final = "withdrawn-"
"""Beginning of the aliases that remember versions that were rolled back; the version's number follows."""
_WITHDRAWN: Final = re.compile(rf"{WITHDRAWN}(\d+)")


def functions_of(environment: Environment) -> list[Function]:
    """Return the functions of an environment, in the order in which they are rolled back.

    Raises:
        CommandError: there are none with an alias, a stack is being deployed, or AWS refuses a call.

    Cost: 1 DescribeStacks and 1 ListStackResources a stack; 1 ListAliases and 1 ListVersionsByFunction a function, and
    one more for every 50 versions.
    """
    client = environment.client("lambda")
    found = [function_of(client, part, name) for part in PARTS for name in _names(environment, part)]
    if not found:
        without = f"{environment.name} has no functions with the alias {LIVE}"
        raise CommandError(f"{without}: deploy this version first{environment.unknown}")
    return found


def move(client: Any, step: Move) -> None:
    """Let the alias of a function point at another version.

    Args:
        client: boto3's client of Lambda.
        step: the function and the version. A version that it withdraws is remembered by an alias.

    Raises:
        CommandError: somebody else has changed the alias, or AWS refuses a call.

    Cost: at most 3 calls.
    """
    function = step.function
    with aws_errors(f"the alias of {function.name} cannot be changed"):
        if step.withdraws and function.live not in function.withdrawn:
            # Before the change, because an interrupted rollback is repeated for functions that have not changed.
            client.create_alias(
                FunctionName=function.name,
                Name=f"{WITHDRAWN}{function.live}",
                FunctionVersion=str(function.live),
                Description="Rolled back: dynashard rollback does not return to it",
            )
        client.update_alias(
            FunctionName=function.name,
            Name=LIVE,
            FunctionVersion=str(step.to.number),
            RevisionId=function.revision,
        )
        if step.to.number in function.withdrawn:
            client.delete_alias(FunctionName=function.name, Name=f"{WITHDRAWN}{step.to.number}")


def _names(environment: Environment, part: str) -> list[str]:
    """Return the names of a stack's functions that have the alias; refuse a stack that is being deployed."""
    client, stack = environment.client("cloudformation"), environment.stack(part)
    aliases = environment.resources(part, "AWS::Lambda::Alias").values()
    if aliases:
        with aws_errors(f"the stack {stack} cannot be read"):
            [described] = client.describe_stacks(StackName=stack)["Stacks"]
        if described["StackStatus"].endswith("_IN_PROGRESS"):
            raise CommandError(
                f"{stack} is being deployed ({described['StackStatus']}), which would undo a rollback. Wait for its "
                f"end, or cancel it: aws cloudformation cancel-update-stack --stack-name {stack}"
            )
    return sorted(arn.split(":")[6] for arn in aliases)


def function_of(client: Any, part: str, name: str) -> Function:
    """Return a function of a stack with its versions.

    Raises `CommandError` if it has no alias, or AWS refuses a call. Cost: as `functions_of` for a function.
    """
    with aws_errors(f"the versions of {name} cannot be read"):
        aliases = {each["Name"]: each for each in _all(client.list_aliases, "Aliases", name)}
        versions = list(_all(client.list_versions_by_function, "Versions", name))
    if LIVE not in aliases:
        raise CommandError(f"{name} has no alias {LIVE}: deploy this version again")
    live = aliases[LIVE]
    shares = live.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
    return Function(
        part=part,
        name=name,
        live=int(live["FunctionVersion"]),
        revision=live["RevisionId"],
        versions=[_version(each) for each in versions if RELEASES.fullmatch(each.get("Description", ""))],
        shifting={int(number): share for number, share in shares.items()},
        withdrawn=frozenset(int(found[1]) for each in aliases if (found := _WITHDRAWN.fullmatch(each))),
    )


def _version(published: Mapping[str, Any]) -> Version:
    named = RELEASES.fullmatch(published["Description"])
    assert named is not None  # noqa: S101 -- chosen by the caller
    understood = published.get("Environment", {}).get("Variables", {}).get(UNDERSTANDS, "")
    return Version(
        int(published["Version"]),
        named[1],
        datetime.strptime(published["LastModified"], "%Y-%m-%dT%H:%M:%S.%f%z"),
        understands=frozenset(filter(None, understood.split(","))),
    )


def _all(operation: Callable[..., Mapping[str, Any]], name: str, function: str) -> Iterator[Mapping[str, Any]]:
    """Yield the members of all pages of a list about a function."""
    page = operation(FunctionName=function)
    yield from page[name]
    while page.get("NextMarker"):
        page = operation(FunctionName=function, Marker=page["NextMarker"])
        yield from page[name]
