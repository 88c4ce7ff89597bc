"""Which transport a process uses. This is the one place that decides, by the setting `TRANSPORT`."""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import dynashard.transport
import dynashard_direct
from dynashard.errors import ConfigurationError
from dynashard.transport.interface import Transport

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


def connect_by(
    name: TransportName, endpoint_url: str | None = None, region: str | None = None, **more: Any
) -> Transport:
    """Return a transport of this name; the arguments are those of `dynashard.transport.connect`.

    Raises `ConfigurationError` as either `connect`. Cost: no request. `botocore` imports the SDK, about 150 ms.
    """
    package = dynashard_direct if name == "direct" else dynashard.transport
    transport: Transport = package.connect(endpoint_url, region, **more)
    return transport
