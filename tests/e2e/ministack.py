"""A local AWS in a process of its own: CloudFormation, API Gateway, Lambda, DynamoDB and the rest, on one port."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Self

import httpx
from botocore.session import get_session

from local.settings import ROOT
from tests.patience import PATIENCE_SECONDS

ACCOUNT = "000000000000"
REGION = "us-east-1"
PORT_ATTEMPTS = 5
PYTHON = ROOT / ".venv-ministack" / "bin" / "python"

# The end of the pipe means that the test run is gone or done with it, however that came about: then everything in
# the process group goes, the functions' processes too.
WATCHED = 'exec 3<&0; (read -r _ <&3; kill -s KILL -- -$$) & exec 3<&-; exec "$@" </dev/null'


@dataclass
class Ministack:
    """A running local AWS that keeps all it writes in one folder.

    Args:
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
        """Start one, and wait until it answers."""
        assert PYTHON.exists(), "The local AWS is not installed: run `make test`, or `make .venv-ministack/.done`."
        ministack = cls(folder / "ministack", folder / "ministack.log", trust)
        ministack.folder.mkdir()
        # Another process may take the port between our look and ministack's own: then it ends, and the next is tried.
        assert any(ministack._start() for _ in range(PORT_ATTEMPTS)), ministack.log_tail()
        return ministack

    def _start(self) -> bool:
        self.port = _free_port()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own command line
                ["/bin/sh", "-c", WATCHED, "watch", str(PYTHON), "-m", "ministack"],
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
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "MINISTACK_REGION": REGION,
            # Roles are enforced and signatures verified.
            "AUTH": "true",
            # They would listen on fixed ports.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "SSL_CERT_FILE": str(self.trust),
        }

    def _answers(self) -> bool:
        deadline, pause = monotonic() + PATIENCE_SECONDS, Event()
        while self.process.poll() is None and monotonic() < deadline:
            try:
                return httpx.get(f"{self.url}/_ministack/health", trust_env=False).status_code == httpx.codes.OK
            except httpx.TransportError:
                pause.wait(0.02)
        return False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """What an AWS tool needs to know to talk to it, and to nothing else."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    def client(self, service: str) -> Any:
        """botocore's client of one of its services."""
        return get_session().create_client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 - the root of an account of one process
        )

    def acting_as(self, role: str) -> Callable[[str], Any]:
        """What makes botocore's clients that act under a role."""
        assumed = self.client("sts").assume_role(RoleArn=role, RoleSessionName="e2e")["Credentials"]
        return lambda service: get_session().create_client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=assumed["AccessKeyId"],
            aws_secret_access_key=assumed["SecretAccessKey"],
            aws_session_token=assumed["SessionToken"],
        )

    def log_tail(self) -> str:
        return "".join(self.log.read_text(errors="replace").splitlines(keepends=True)[-40:])

    def stop(self) -> None:
        self._kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
