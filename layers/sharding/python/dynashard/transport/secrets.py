"""Secrets, by botocore's client for Secrets Manager, made when the first one is read."""

from typing import Any

from dynashard.errors import EngineUnavailableError


class SecretReader:
    """Reads the text of one secret.

    Args:
        arn: the secret's.
        what: its name in an error, such as `cursor keys`.
        region: None takes the SDK's: environment or profile.
        profile: None takes the SDK's own credentials.
    """

    def __init__(self, arn: str, what: str, *, region: str | None = None, profile: str | None = None) -> None:
        self._arn = arn
        self._what = what
        self._region = region
        self._profile = profile
        self._client: Any = None

    def __call__(self) -> str:
        """The secret as it is now. Cost: 1 request to Secrets Manager; the first time also the SDK's import.

        Raises:
            EngineUnavailableError: it cannot be read.
        """
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 -- only who reads a secret pays
        from botocore.session import Session  # noqa: PLC0415

        if self._client is None:
            self._client = Session(profile=self._profile).create_client("secretsmanager", region_name=self._region)
        try:
            return str(self._client.get_secret_value(SecretId=self._arn)["SecretString"])
        except (BotoCoreError, ClientError) as error:
            raise EngineUnavailableError(
                f"The {self._what} cannot be read: try again.", operation="GetSecretValue"
            ) from error
