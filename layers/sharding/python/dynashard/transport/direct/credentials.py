"""Credentials: explicit keys, those of the environment, or those of botocore's providers.

Secrets are in no `repr`, so they reach neither logs nor tracebacks.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from dynashard.errors import ConfigurationError
from dynashard.transport.classification import unreached
from dynashard.transport.forks import after_fork
from dynashard.transport.interface import AwsSession, Settings
from dynashard.transport.lookups import Lookup

_REQUIRED_SECONDS: Final = 600
"""Botocore asks a provider 15 minutes before credentials expire, and waits for it from this long before."""


class Credentials(Struct, frozen=True):
    """An access key with its secret, and the token of temporary ones."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __post_init__(self) -> None:
        for value in (self.access_key, self.secret_key, self.token or ""):
            if not value.isascii() or not value.isprintable() or " " in value:
                raise ConfigurationError(
                    "The credentials contain a space, a line break or another character that no AWS credentials have. "
                    "Copy them again."
                )

    def __repr__(self) -> str:
        """Show the access key alone, because the others are secrets."""
        return f"Credentials({self.access_key!r})"


Source = Callable[[str], Credentials]
"""Returns the credentials for a request of an operation, refreshed if they are about to expire."""


def environment_credentials(environ: Mapping[str, str]) -> Credentials | None:
    """Return the credentials of the environment's variables, which Lambda sets; None if botocore must find them."""
    access_key, secret_key = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if not access_key or not secret_key or environ.get("AWS_CREDENTIAL_EXPIRATION"):
        return None
    token = environ.get("AWS_SECURITY_TOKEN") or environ.get("AWS_SESSION_TOKEN") or None
    return Credentials(access_key, secret_key, token)


def source_of(settings: Settings, environ: Mapping[str, str]) -> Source:
    """Return where a transport gets its credentials; imports botocore only if nothing else has them.

    Explicit keys come first, then a session or a named profile, then the environment's variables, then botocore's other
    providers, which read files or call a service. The environment's variables are read once, because they do
    not change in a process.
    """
    if settings.access_key is not None and settings.secret_key is not None:
        fixed: Credentials | None = Credentials(settings.access_key, settings.secret_key, settings.token)
    else:
        named = settings.profile is not None or settings.session is not None
        fixed = None if named else environment_credentials(environ)
    if fixed is None:
        return ProviderCredentials(settings.profile, settings.session)
    given = fixed
    return lambda _operation: given


class ProviderCredentials:
    """Credentials of botocore's providers, which refresh them before they expire. Looked up on first use."""

    def __init__(self, profile: str | None, session: AwsSession | None = None) -> None:
        self._profile = profile
        self._session = session
        self._begin()
        after_fork(self, ProviderCredentials._begin)

    def _begin(self) -> None:
        """Begin without providers: another thread may have held their locks when this process was forked."""
        self._provided: Any = None
        self._lookup = Lookup(self._look_up, "the credentials of a provider")
        # Replaced as a whole, so threads need no lock.
        self._last: tuple[Any, Credentials] | None = None

    def __call__(self, operation: str) -> Credentials:
        """Return what is valid now.

        Raises:
            EngineUnavailableError: a provider does not answer, or not by the deadline in force; nothing was sent.
            ConfigurationError: there are no credentials, or the provider's service refuses them.

        Cost: the first call imports botocore, about 100 ms; calls to a provider's service before credentials expire,
            which requests wait for only in the last ten minutes.
        """
        # Only callers without keys need botocore.
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        from dynashard.transport.sdk import failure_of  # noqa: PLC0415

        provided, last = self._provided, self._last
        try:
            if provided is None or _refreshes(provided):
                if last is not None and not _refreshes(provided, _REQUIRED_SECONDS):
                    # These are valid for long enough, so a provider that is slow holds nobody up.
                    with suppress(OSError):
                        self._lookup.begin()
                    return last[1]
                frozen = self._lookup.result()
            else:
                frozen = provided.get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            raise failure_of(operation, error) from error
        except OSError as error:
            raise unreached(operation, "LookupTimeout", str(error)) from error
        if last is None or last[0] != frozen:
            last = frozen, Credentials(frozen.access_key, frozen.secret_key, frozen.token)
            self._last = last
        return last[1]

    def _look_up(self) -> Any:
        if self._provided is None:
            self._provided = self._found()
        return self._provided.get_frozen_credentials()

    def _found(self) -> Any:
        from dynashard.transport.client import open_session  # noqa: PLC0415 - it imports botocore

        found = open_session(self._profile, self._session).get_credentials()
        if found is None:
            raise ConfigurationError(
                "There are no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role."
            )
        return found


def _refreshes(provided: Any, *seconds: int) -> bool:
    """Whether credentials of botocore would ask their provider now, or expire in so many seconds."""
    refresh_needed = getattr(provided, "refresh_needed", None)
    return refresh_needed is not None and bool(refresh_needed(*seconds))
