"""The root certificates that settings name, in botocore's order."""

import os
from collections.abc import Mapping
from typing import Final

from dynashard.errors import ConfigurationError

_SETTING: Final = "AWS_CA_BUNDLE"
_FALLBACK: Final = "REQUESTS_CA_BUNDLE"


def ca_bundle(configured: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the file of trusted root certificates; None if no setting names one.

    `configured` is the SDK's setting `ca_bundle`, which `AWS_CA_BUNDLE` overrides. `REQUESTS_CA_BUNDLE` is the next.

    Raises `ConfigurationError` if there is no such file, with the name of the setting.
    """
    path = environ.get(_FALLBACK) if configured is None else configured
    if path is None:
        return None
    name = _FALLBACK if configured is None else _SETTING if environ.get(_SETTING) == path else "ca_bundle"
    if not os.path.isfile(path):  # noqa: PTH113 - a text, as OpenSSL takes it
        raise ConfigurationError(
            f"{name} is {path!r}, which is not a file: name a file of root certificates in PEM form, or remove it."
        )
    return path


def unreadable(path: str | None, error: OSError) -> ConfigurationError:
    """Return the error for a file of root certificates that cannot be used."""
    return ConfigurationError(
        f"The root certificates in {path or 'the system'} cannot be used ({error}): name a file in PEM form in "
        f"{_SETTING}."
    )


def require_readable(path: str | None) -> None:
    """Refuse a file of root certificates that cannot be used, as `unreadable` says."""
    if path is None:
        return
    import ssl  # noqa: PLC0415 - only for a file that settings name

    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise unreadable(path, error) from error
