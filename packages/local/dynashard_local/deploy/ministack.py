"""A local AWS in a process of its own: CloudFormation, API Gateway, Lambda, DynamoDB and others, on one port."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Final, Self

import boto3
import httpx

from dynashard_local.account import ACCOUNT_ID, REGION
from dynashard_local.engine.process import PORT_ATTEMPTS, free_port
from dynashard_local.errors import LocalStackError
from dynashard_local.root import backend_root

PYTHON: Final = Path(".venv-ministack", "bin", "python")
"""Where a backend has the interpreter of the local AWS."""
PLACEHOLDERS: Final = Path(__file__).resolve().parent / "placeholders.py"
LONGEST_SECONDS: Final = 300.0
"""How long to wait for the local AWS, and for commands on it; far longer than they take on a busy machine."""

# The end of the pipe means that the process which started it has ended or was killed. Then the watchdog kills the
# process group, with the functions' processes.
_WATCHED: Final = 'exec 3<&0; (read -r _ <&3; kill -s KILL -- -$$) & exec 3<&-; exec "$@" </dev/null'


@dataclass
class Ministack:
    """A running local AWS that keeps all it writes in one folder.

    Attributes:
        folder: for its own use; removed when it stops.
        log: where its output goes; kept.
        trust: certificate that its gateway accepts of token issuers.
    """

    folder: Path
    log: Path
    trust: Path
    port: int = field(init=False, default=0)

    @classmethod
    def started(cls, folder: Path, trust: Path) -> Self:
        """Start one, and wait until it answers. Raises `LocalStackError` if it is not installed, or does not start."""
        if not (backend_root() / PYTHON).exists():
            raise LocalStackError("The local AWS is not installed: run `make .venv-ministack/.done`.")
        ministack = cls(folder / "ministack", folder / "ministack.log", trust)
        ministack.folder.mkdir()
        # Another process may take the free port before it does.
        if not any(ministack._start() for _ in range(PORT_ATTEMPTS)):
            raise LocalStackError(f"The local AWS does not start. The end of {ministack.log}:\n{ministack.log_tail()}")
        return ministack

    def _start(self) -> bool:
        self.port = free_port()
        with self.log.open("ab") as log:
            # -P: the folder of the program has a module of the same name.
            self.process = subprocess.Popen(  # noqa: S603 - our own command line
                ["/bin/sh", "-c", _WATCHED, "watch", str(backend_root() / PYTHON), "-P", str(PLACEHOLDERS)],
                env=self._own_environment(),
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        answers = self._answers()
        if not answers:
            self._kill()
        return answers

    def _own_environment(self) -> Mapping[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_HOST": "localhost",
            "MINISTACK_ACCOUNT_ID": ACCOUNT_ID,
            "MINISTACK_REGION": REGION,
            # Roles are enforced and signatures verified.
            "AUTH": "true",
            # They would listen on fixed ports.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "SSL_CERT_FILE": str(self.trust),
        }

    def _answers(self) -> bool:
        deadline, pause = monotonic() + LONGEST_SECONDS, Event()
        while self.process.poll() is None and monotonic() < deadline:
            try:
                return httpx.get(f"{self.url}/_ministack/health", trust_env=False).status_code == httpx.codes.OK
            except httpx.TransportError:
                pause.wait(0.02)
        return False

    @property
    def url(self) -> str:
        """Where all services listen."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables by which AWS tools use it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            # Botocore reads this one, and the SDK of JavaScript the next one.
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    @property
    def environment(self) -> Mapping[str, str]:
        """The whole environment of a tool, so that it uses nothing of the user's own configuration."""
        folder = str(self.folder)
        own = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder}
        return {**own, **self.variables}

    def client(self, service: str, *credentials: str) -> Any:
        """Return boto3's client of one of its services; without credentials, it acts as the root of the account."""
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        given: dict[str, Any] = dict(zip(names, credentials or ("test", "test"), strict=False))
        return boto3.session.Session(region_name=REGION).client(service, endpoint_url=self.url, **given)

    def log_tail(self) -> str:
        """The last lines of its log."""
        return "".join(self.log.read_text(errors="replace").splitlines(keepends=True)[-40:])

    def stop(self) -> None:
        """End it, and remove its folder."""
        self._kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(LONGEST_SECONDS)
