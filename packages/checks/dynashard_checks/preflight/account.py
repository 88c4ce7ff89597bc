"""Read-only questions to an AWS account."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any


class NotAnsweredError(Exception):
    """A question got no answer. `code` is AWS's code of the refusal; empty if the service cannot be reached."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Account:
    """An account in a region.

    Args:
        client: returns boto3's client of a service.
    """

    def __init__(self, client: Callable[[str], Any]) -> None:
        self._client = cache(client)

    def ask(self, service: str, method: str, **request: Any) -> Mapping[str, Any]:
        """Return the answer of one call, such as `ask("lambda", "get_account_settings")`.

        Raises:
            NotAnsweredError: the service refuses or does not answer; the message says what to allow.
        """
        return next(self._answers(service, method, request, paged=False))

    def pages(self, service: str, method: str, **request: Any) -> Iterator[Mapping[str, Any]]:
        """Yield all pages of a listing; raises as `ask`."""
        return self._answers(service, method, request, paged=True)

    def _answers(
        self, service: str, method: str, request: Mapping[str, Any], *, paged: bool
    ) -> Iterator[Mapping[str, Any]]:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - other commands need no SDK

        try:
            client = self._client(service)
            if paged:
                yield from client.get_paginator(method).paginate(**request)
            else:
                yield getattr(client, method)(**request)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            action = f"{service}:{client.meta.method_to_api_mapping[method]}"
            advice = f"; allow {action}" if "AccessDenied" in code or code == "UnauthorizedOperation" else ""
            raise NotAnsweredError(f"{error}{advice}", code) from error
        except BotoCoreError as error:
            raise NotAnsweredError(str(error)) from error
