"""Run the local stack as a process of its own, and connect to its API and tables."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import httpx

from dynashard_local.functions.specs import api_environment
from dynashard_local.root import backend_root
from dynashard_local.settings import Settings

_RENEW_SECONDS = 900
_TIMEOUT = 60
"""Seconds that clients wait for an answer."""
_READY = re.compile(r"ready on (http://127\.0\.0\.1:\d+)")
_ENGINE = re.compile(r"engine at (http://127\.0\.0\.1:\d+)")


@dataclass(frozen=True)
class Stack:
    """A running local stack.

    Attributes:
        url: the URL of its API.
        environment: the environment variables with which commands find it.
        variables: the environment variables of its API: table names, endpoint, credentials.
    """

    url: str
    environment: Mapping[str, str]
    variables: Mapping[str, str]

    def client(self, tenant: str, **caller: Any) -> httpx.Client:
        """Return a client that sends requests of a tenant.

        `caller` is what else its token says: `subject`, `scopes` and `claims`, as `POST /local/tokens` takes them.
        """
        tokens = _Tokens(self.url, {"tenant_id": tenant, **caller})
        return httpx.Client(base_url=self.url, timeout=_TIMEOUT, trust_env=False, auth=tokens)

    def command(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start `dynashard` with these arguments."""
        return subprocess.Popen(  # noqa: S603 - this checkout's own command
            [str(Path(sys.executable).with_name("dynashard")), *arguments],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            text=True,
        )


class _Tokens(httpx.Auth):
    """Gets a token of the local issuer, and a new one before it expires, because a soak may last longer."""

    def __init__(self, url: str, claims: Mapping[str, Any]) -> None:
        self._url, self._claims = url, claims
        self._token, self._renew = "", 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send a request with a token. Costs one more request every 15 minutes."""
        if monotonic() >= self._renew:
            answer = httpx.post(f"{self._url}/local/tokens", json=self._claims, timeout=_TIMEOUT, trust_env=False)
            if answer.is_error:
                raise ValueError(f"no token for {self._claims}: {answer.text}")
            self._token, self._renew = answer.json()["token"], monotonic() + _RENEW_SECONDS
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


@contextmanager
def running_stack(data_dir: Path, *, lease: int, **more: str) -> Iterator[Stack]:
    """Start the local stack on free ports, and stop it at the end.

    Args:
        data_dir: the folder of its data.
        lease: the lease of the topology, in seconds.
        more: further environment variables.

    Raises:
        RuntimeError: it does not start. The message contains its output.
    """
    # Without reloading, edits of the checkout do not affect a running measurement.
    settings = {"DATA_DIR": str(data_dir), "TOPOLOGY_LEASE_SECONDS": str(lease), "LOCAL_RELOAD": "off", **more}
    with subprocess.Popen(
        [sys.executable, "-m", "dynashard_local"],
        cwd=backend_root(),
        env={**os.environ, **settings, "PORT": "0", "DYNAMODB_PORT": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            url, engine = _addresses(process)
            port = engine.rpartition(":")[2]
            environment = {**settings, "DYNAMODB_PORT": port}
            yield Stack(url, environment, api_environment(Settings.from_env(environment)))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _addresses(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """Return the URLs of the API and of the engine that the local stack prints."""
    assert process.stdout is not None  # noqa: S101 - asked for as a pipe
    printed = ""
    for line in process.stdout:
        printed += line
        ready, engine = _READY.search(printed), _ENGINE.search(printed)
        if ready and engine:
            # Further output must not fill the pipe.
            Thread(target=process.stdout.read, daemon=True).start()
            return ready[1], engine[1]
    raise RuntimeError(f"the local stack did not start: {printed}")
