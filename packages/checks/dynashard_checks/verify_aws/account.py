"""The caller's account: clients of its services, and the confirmation that it is the right one."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from dynashard_tools.environments import is_local
from dynashard_tools.failure import CommandError

CONNECTIONS: Final = 128
"""Connections at once, for checks that send much."""


@dataclass
class Account:
    """The account of the SDK's own configuration.

    Attributes:
        in_region: the region of all calls; None for that of the SDK's own configuration.
    """

    in_region: str | None = None
    _session: Any = field(default_factory=boto3.session.Session)
    _clients: dict[tuple[str, bool], Any] = field(default_factory=dict)

    def client(self, service: str, *, retries: bool = True) -> Any:
        """Return boto3's client of a service; without retries it sends each request once."""
        if (service, retries) not in self._clients:
            attempts = {"mode": "standard", "total_max_attempts": 5 if retries else 1}
            # Limits are tested with requests that botocore would refuse itself.
            config = Config(retries=attempts, max_pool_connections=CONNECTIONS, parameter_validation=False)
            try:
                self._clients[service, retries] = self._session.client(
                    service, region_name=self.in_region, config=config
                )
            except BotoCoreError as error:
                raise CommandError(f"AWS cannot be reached: {error}") from error
        return self._clients[service, retries]

    @property
    def number(self) -> str:
        """The account's number. Raises `CommandError` if the credentials are not usable. Cost: one call of STS."""
        try:
            return str(self.client("sts").get_caller_identity()["Account"])
        except (BotoCoreError, ClientError) as error:
            raise CommandError(f"the account cannot be read: {error}") from error

    @property
    def region(self) -> str:
        """The region of all calls."""
        return str(self.client("dynamodb").meta.region_name)

    @property
    def local(self) -> bool:
        """Whether a local AWS answers, instead of AWS."""
        return is_local(str(self.client("dynamodb").meta.endpoint_url))

    @property
    def local_gateway(self) -> str:
        """The URL of a local AWS that serves the API by its `Host` header; empty on AWS."""
        return os.environ.get("AWS_ENDPOINT_URL", "") if self.local else ""


def confirm(number: str, given: str | None, *, assumed: bool, ask: Callable[[], str]) -> None:
    """Raise `CommandError` unless the user has confirmed the account by its number.

    Args:
        number: the account of the credentials.
        given: the number in `--account`.
        assumed: `--yes`: nobody can be asked.
        ask: asks the user to type the number.
    """
    if given is None and assumed:
        raise CommandError("--yes needs --account NUMBER, so that a script cannot spend in the wrong account")
    if assumed:
        said = given
    else:
        if given not in (None, number):
            raise CommandError(_refusal(number, given))
        said = ask().strip()
    if said != number:
        raise CommandError(_refusal(number, said))


def _refusal(number: str, said: str | None) -> str:
    return f"the credentials are those of account {number}, not of {said or 'none'}; nothing was done"
