"""Deployed environments: their region and account by cdk.json, and clients of their services."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from dynashard.errors import ConfigurationError
from dynashard.transport.aws import stack_outputs
from dynashard_local.root import MARK, backend_root
from dynashard_tools.failure import CommandError

REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""Name the region of an environment without one. `cdk deploy` reads the first one first, botocore only the second."""


@contextmanager
def aws_errors(what: str, then: str = "") -> Iterator[None]:
    """End the command with one line if AWS refuses a call, or cannot be called.

    Args:
        what: what could not be done; the line begins with it.
        then: what to do, at the end of the line.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - the local stack needs no SDK

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"{what}: {error}{then}") from error


@dataclass(frozen=True, slots=True)
class Environment:
    """A deployed environment, and the region that all calls go to.

    Attributes:
        unknown: what an error says besides, if cdk.json has no environment of this name.
    """

    name: str
    region: str
    unknown: str = ""

    def stack(self, part: str) -> str:
        """Return the full name of a stack, such as `Data`."""
        return f"Dynashard-{self.name}-{part}"

    def unreadable(self, error: ConfigurationError) -> CommandError:
        """Return the error of a command that cannot read a stack; a wrong name is the likely cause if there is none."""
        return CommandError(f"{error}{self.unknown}" if "does not exist" in str(error) else str(error))

    def client(self, service: str, **options: Any) -> Any:
        """Return boto3's client of a service; options as of `Session.client`. Raises `CommandError`."""
        import boto3  # noqa: PLC0415 - the local stack needs no SDK
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - the local stack needs no SDK

        try:
            return boto3.session.Session(region_name=self.region).client(service, **options)
        except (BotoCoreError, ValueError) as error:
            raise CommandError(f"{service} of the environment {self.name} cannot be used: {error}") from error

    def outputs(self, part: str) -> Mapping[str, str]:
        """Return the outputs of a stack. Raises `CommandError` if it cannot be read. Cost: 1 DescribeStacks."""
        try:
            return stack_outputs(self.stack(part), region=self.region)
        except ConfigurationError as error:
            raise self.unreadable(error) from error

    def output(self, part: str, name: str) -> str:
        """Return one output of a stack. Raises `CommandError` if there is none. Cost: as `outputs`."""
        outputs = self.outputs(part)
        if name not in outputs:
            raise CommandError(f"the stack {self.stack(part)} has no output {name}: deploy it again from this version")
        return outputs[name]

    def resources(self, part: str, kind: str) -> dict[str, str]:
        """Return the physical names of a stack's resources of one type, by their logical ids.

        They are empty if there is no such stack. Raises `CommandError` if it cannot be read. Cost: 1
        ListStackResources for every 100 resources.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 - the local stack needs no SDK

        client = self.client("cloudformation")
        with aws_errors(f"the stack {self.stack(part)} cannot be read"):
            try:
                pages = client.get_paginator("list_stack_resources").paginate(StackName=self.stack(part))
                return {
                    each["LogicalResourceId"]: each["PhysicalResourceId"]
                    for page in pages
                    for each in page["StackResourceSummaries"]
                    if each["ResourceType"] == kind
                }
            except ClientError as error:
                if "does not exist" in str(error):
                    return {}
                raise


@dataclass(frozen=True, slots=True)
class Credentials:
    """Whose credentials are used.

    Attributes:
        account: the number of the AWS account.
        arn: the user or role.
        local_url: the endpoint of a local AWS, which has no accounts; None for AWS.
    """

    account: str
    arn: str
    local_url: str | None = None

    def __str__(self) -> str:
        return f"account {self.account} ({self.arn})"


def backend_context() -> Mapping[str, Any]:
    """Return the context of cdk.json, with the settings of each environment.

    Raises:
        CommandError: the command does not run in the folder of a backend, or the file is not JSON.
    """
    path = backend_root() / MARK
    try:
        context: Mapping[str, Any] = json.loads(path.read_text("utf-8"))["context"]
    except FileNotFoundError:
        raise CommandError(
            f"there is no {MARK} in {path.parent} or above: run this in the folder of a backend"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{path} cannot be used: it must be JSON with a member `context`") from error
    return context


def environment_named(name: str) -> Environment:
    """Return a deployed environment, with the region of its settings in cdk.json, as `cdk deploy` chooses it.

    If the settings name an account, the credentials must be of that account. A local AWS is not asked.

    Raises:
        CommandError: the name is empty, nothing names a region, or the credentials are of another account, or unusable.

    Cost: 1 GetCallerIdentity if the settings name an account.
    """
    return environment_in(backend_context()["environments"], name, os.environ)


def environment_in(environments: Mapping[str, Any], name: str, environ: Mapping[str, str]) -> Environment:
    """Return an environment of these settings; see `environment_named`. An unknown name has no settings."""
    if not name:
        raise CommandError("the environment has an empty name: name one that is deployed, such as --env prod")
    settings = environments.get(name, {})
    unknown = "" if name in environments else f"; cdk.json has no environment {name}, but {', '.join(environments)}"
    found = Environment(name, settings.get("region") or _region(name, environ, unknown), unknown)
    if (account := settings.get("account")) is not None:
        _require_account(found, account)
    return found


def is_local(url: str) -> bool:
    """Whether a client's endpoint is a local AWS rather than AWS."""
    host = urlsplit(url).hostname or ""
    return not host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


def _region(name: str, environ: Mapping[str, str], unknown: str) -> str:
    given = {variable: environ[variable] for variable in REGION_VARIABLES if environ.get(variable)}
    regions = set(given.values())
    if len(regions) > 1:
        named = " and ".join(f"{variable} is {region}" for variable, region in given.items())
        raise CommandError(f"{named}: set environments.{name}.region in cdk.json, or both variables to one region")
    return regions.pop() if regions else _configured_region(name, unknown)


def _configured_region(name: str, unknown: str) -> str:
    import boto3  # noqa: PLC0415 - the local stack needs no SDK
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    try:
        region = boto3.session.Session().region_name
    except BotoCoreError as error:
        raise CommandError(f"the region of the environment {name} cannot be read: {error}") from error
    if not region:
        raise CommandError(
            f"the environment {name} has no region: set environments.{name}.region in cdk.json, or AWS_DEFAULT_REGION"
            f"{unknown}"
        )
    return str(region)


def _require_account(environment: Environment, account: str) -> None:
    credentials = credentials_of(environment, f". {environment.name} is in account {account}")
    if credentials.local_url is not None:
        print(f"the account is not checked: {credentials.local_url} is a local AWS", file=sys.stderr)
    elif credentials.account != account:
        raise CommandError(
            f"the credentials are of {credentials}, and the environment {environment.name} is in account {account}: "
            f"use credentials of {account}, or correct environments.{environment.name}.account in cdk.json. "
            "Nothing was done"
        )


def credentials_of(environment: Environment, then: str = "") -> Credentials:
    """Return whose credentials the calls of an environment are made with.

    Args:
        environment: it chooses the Region.
        then: what to do if this cannot be read, at the end of the line.

    Raises:
        CommandError: STS refuses the call, or cannot be called.

    Cost: 1 GetCallerIdentity; none with a local AWS.
    """
    from botocore.config import Config  # noqa: PLC0415 - the local stack needs no SDK

    # A person waits for it, before anything else is done.
    config = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 2})
    client = environment.client("sts", config=config)
    if is_local(client.meta.endpoint_url):
        return Credentials("", "", local_url=client.meta.endpoint_url)
    with aws_errors("the account of the credentials cannot be read", then):
        caller = client.get_caller_identity()
    return Credentials(caller["Account"], caller["Arn"])
