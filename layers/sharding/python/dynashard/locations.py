"""The tables and keys of a backend: the local stack, by the variables of `make run`, or a deployed environment."""

import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypedDict

from dynashard.cursor_keys import CursorKeys, Keys, keys_in
from dynashard.errors import ConfigurationError
from dynashard.key_clock import DEFAULT_BOUNDS, ClockBounds
from dynashard.topology import DEFAULT_LEASE
from dynashard.transport import AwsSession, Transport, connect
from dynashard.transport.aws import secret_reader, stack_outputs
from dynashard.transport.selection import name_in

CURSOR_SECRET_OUTPUT: Final = "CursorSecretArn"  # noqa: S105 - the name of an output
"""The API stack's output that names the secret with the cursor keys."""
CURSOR_KEY_FILE: Final = "cursor-key"
"""File in the data folder of the local stack with the key that signs its cursors."""
CLOCK_OUTPUTS: Final = ("ClockSeconds", "AheadSeconds")
"""The data stack's outputs with the bounds on clocks and keys."""
_TABLE_OUTPUT: Final = "TableName"
_TOPOLOGY_OUTPUT: Final = "TopologyName"
_LOCAL: Final = "Dynashard-local-Data-{}"
_ANY: Final = "local"
_LAST_PORT: Final = 65_535
_OPERATION: Final = 10.0
"""Seconds that a request from outside a deployment may take: the least that its settings allow."""


class _User(TypedDict):
    """Whose account to work in, and where."""

    region: str | None
    profile: str | None
    session: AwsSession | None


class Location(TypedDict):
    """The tables and keys of a backend, as `Dynashard` takes them; the transport has sent no request."""

    transport: Transport
    table: str
    topology_table: str
    cursor_keys: CursorKeys
    lease: float
    operation_seconds: float
    clocks: ClockBounds


def local_stack(environ: Mapping[str, str]) -> Location:
    """Return the location of the local stack, as `Dynashard.local` describes it.

    `environ` may also hold `TABLE_NAME` and `TOPOLOGY_TABLE`, for tables other than those of `make run`. An empty value
    counts as unset.
    """
    if not isinstance(environ, Mapping):
        raise ConfigurationError(
            f'local takes variables; it got {environ!r}; write Dynashard.local({{"DYNAMODB_ENDPOINT": "http://..."}})'
        )
    folder = Path(environ.get("DATA_DIR") or ".data").expanduser()
    operation = _seconds(environ, "TOPOLOGY_OPERATION_SECONDS", 4.0, most=900.0)
    keys = {"access_key": _ANY, "secret_key": _ANY}
    return Location(
        transport=_connect(environ, _endpoint(environ), "us-east-1", **keys, operation_seconds=operation),
        table=environ.get("TABLE_NAME") or _LOCAL.format("Table"),
        topology_table=environ.get("TOPOLOGY_TABLE") or _LOCAL.format("Topology"),
        cursor_keys=CursorKeys(lambda: _key_in(folder / CURSOR_KEY_FILE), time.monotonic),
        lease=_seconds(environ, "TOPOLOGY_LEASE_SECONDS", DEFAULT_LEASE, most=3_600.0),
        operation_seconds=operation,
        clocks=ClockBounds(
            off=_seconds(environ, "TOPOLOGY_CLOCK_SECONDS", DEFAULT_BOUNDS.off, most=60.0),
            ahead=_seconds(environ, "TOPOLOGY_AHEAD_SECONDS", DEFAULT_BOUNDS.ahead, most=3_600.0),
        ),
    )


def deployed(
    environment: str, *, region: str | None = None, profile: str | None = None, session: AwsSession | None = None
) -> Location:
    """Return the location of an environment in cdk.json, as `Dynashard.deployed` describes it."""
    user: _User = {"region": region, "profile": profile, "session": session}
    outputs = _outputs(f"Dynashard-{environment}-Data", _TABLE_OUTPUT, _TOPOLOGY_OUTPUT, user=user)

    @cache
    def secret() -> Callable[[], str]:
        api = _outputs(f"Dynashard-{environment}-Api", CURSOR_SECRET_OUTPUT, user=user)
        return secret_reader(api[CURSOR_SECRET_OUTPUT], "cursor keys", **user)

    return Location(
        transport=_connect(os.environ, None, region, profile=profile, session=session, operation_seconds=_OPERATION),
        table=outputs[_TABLE_OUTPUT],
        topology_table=outputs[_TOPOLOGY_OUTPUT],
        cursor_keys=CursorKeys(lambda: keys_in(secret()()), time.monotonic),
        lease=DEFAULT_LEASE,
        operation_seconds=_OPERATION,
        clocks=_clocks(outputs),
    )


def _clocks(outputs: Mapping[str, str]) -> ClockBounds:
    """The bounds in the outputs of a data stack; the defaults if it is of a release that had no others."""
    off, ahead = CLOCK_OUTPUTS
    return ClockBounds(
        off=float(outputs.get(off, DEFAULT_BOUNDS.off)), ahead=float(outputs.get(ahead, DEFAULT_BOUNDS.ahead))
    )


def _connect(environ: Mapping[str, str], endpoint: str | None, region: str | None, **more: Any) -> Transport:
    """Return the transport that `TRANSPORT` names."""
    return connect(endpoint, region, transport=name_in(environ), **more)


def _outputs(stack: str, *wanted: str, user: _User) -> Mapping[str, str]:
    outputs = stack_outputs(stack, **user)
    for name in wanted:
        if name not in outputs:
            raise ConfigurationError(f"the stack {stack} has no output {name}: deploy it again from this version")
    return outputs


def _key_in(path: Path) -> Keys:
    try:
        return (path.read_text("utf-8").strip(),)
    except OSError as error:
        raise ConfigurationError(
            f"the cursor key of the local stack cannot be read ({error}); set DATA_DIR to the folder of `make run`, "
            "which creates the key"
        ) from error


def _endpoint(environ: Mapping[str, str]) -> str:
    endpoint, port = environ.get("DYNAMODB_ENDPOINT"), environ.get("DYNAMODB_PORT") or "8001"
    if endpoint:
        return endpoint.rstrip("/")
    if not (port.isascii() and port.isdecimal() and 0 < int(port) <= _LAST_PORT):
        raise ConfigurationError(
            f"DYNAMODB_PORT is {port!r}; it must be the port in the banner of `make run`, 1 to {_LAST_PORT}"
        )
    return f"http://127.0.0.1:{port}"


def _seconds(environ: Mapping[str, str], name: str, default: float, *, most: float) -> float:
    text = environ.get(name) or str(default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= most:
        raise ConfigurationError(f"{name} is {text!r}: give seconds above 0, at most {most:.0f}")
    return seconds
