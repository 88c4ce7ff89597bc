"""Which transport a process uses: the setting `TRANSPORT`."""

from collections.abc import Mapping
from typing import Final, Literal, get_args

from dynashard.errors import ConfigurationError

TransportName = Literal["botocore", "direct"]
VARIABLE: Final = "TRANSPORT"
DEFAULT: Final[TransportName] = "direct"


def transport_name(text: str) -> TransportName:
    """Return the transport that a text names; raises `ConfigurationError` if there is no such transport."""
    for name in get_args(TransportName):
        if name == text:
            found: TransportName = name
            return found
    raise ConfigurationError(f"{VARIABLE} is {text!r}: use {' or '.join(get_args(TransportName))}")


def name_in(environ: Mapping[str, str]) -> TransportName:
    """Return the transport that the variable names, the default if it is unset or empty; raises as `transport_name`."""
    return transport_name(environ.get(VARIABLE) or DEFAULT)
