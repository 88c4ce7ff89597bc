"""The deployment of the tests, which is built if its sources have changed, and callers of it over HTTP."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from filelock import FileLock

from dynashard_local.deploy import deployment
from dynashard_local.deploy.deployment import PREFIX, bootstrapped, cdk, run
from dynashard_local.deploy.ministack import Ministack
from dynashard_local.deploy.token_issuer import serving
from dynashard_local.errors import LocalStackError
from dynashard_local.gateway.tokens import Issuer
from dynashard_tools.cli import main
from tests.e2e.local_process import ROOT
from tests.waiting import HANG_SECONDS

__all__ = ["PREFIX", "TENANT_CLAIM", "Deployment", "bootstrapped", "cdk", "deploy", "deployed", "dynashard"]

TENANT_CLAIM = "org_id"
BUILT = ("build/host/.done", ".venv-ministack/.done")


class Deployment(deployment.Deployment):
    """The environment `dev`, deployed, and callers of its API."""

    @property
    def assembly(self) -> Path:
        """The folder of the synthesised templates and their assets."""
        return self.aws.folder.parent / "cdk.out"

    def client(self, token: str | None = None) -> httpx.Client:
        """Return a caller with this token."""
        headers = {"Host": self.host} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        return httpx.Client(base_url=self.aws.url, headers=headers, timeout=HANG_SECONDS, trust_env=False)

    def tenant(self, tenant: str) -> httpx.Client:
        """Return a caller of this tenant."""
        return self.client(self.issuer.issue({TENANT_CLAIM: tenant}))

    def configure(self, function: str, **configuration: Any) -> None:
        """Change the configuration of a function, publish it, and let the alias that everything invokes point at it."""
        client = self.aws.client("lambda")
        client.update_function_configuration(FunctionName=function, **configuration)
        version = client.publish_version(FunctionName=function)["Version"]
        client.update_alias(FunctionName=function, Name="live", FunctionVersion=version)

    def acting_as(self, role: str) -> Callable[[str], Any]:
        """Return a function that makes botocore's clients that act under a role."""
        assumed = self.aws.client("sts").assume_role(RoleArn=role, RoleSessionName="e2e")["Credentials"]
        credentials = [assumed[name] for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")]
        return lambda service: self.aws.client(service, *credentials)


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Build the functions, start a local AWS, prepare it with `cdk bootstrap`, and `cdk deploy` to it."""
    _build()
    with deployment.deployed(folder, TENANT_CLAIM) as made:
        yield Deployment(made.aws, made.issuer, made.outputs)


@contextmanager
def deployed_as_shipped(folder: Path) -> Iterator[Deployment]:
    """Deploy as `deployed`, with the sign-in of cdk.json instead of an issuer on the command line."""
    _build()
    with serving(folder) as (issuer, certificate), bootstrapped(folder, certificate) as aws:
        yield deploy(aws, issuer, "--context=env=dev", "--context=assets=build/host", f"--output={folder / 'cdk.out'}")


def deploy(aws: Ministack, issuer: Issuer, *options: str) -> Deployment:
    """Deploy all stacks of the environment that the options name."""
    return Deployment(aws, issuer, deployment.deploy(aws, issuer, *options).outputs)


def dynashard(aws: Ministack, *arguments: str) -> str:
    """Run our own command line against a local AWS, and return its output.

    It runs in this process, because a process of its own takes a second to start. `test_deployed_program.py` shows that
    the program finds a deployment by the variables that a person exports.

    Raises:
        LocalStackError: the command fails; the message has its output.
    """
    said, status = io.StringIO(), None
    with (
        chdir(ROOT),
        patch.dict(os.environ, aws.environment, clear=True),
        patch.object(sys, "argv", ["dynashard", *arguments]),
        patch.object(sys, "stdin", io.StringIO()),
        redirect_stdout(said),
        redirect_stderr(said),
    ):
        try:
            main()
        except SystemExit as ended:
            status = ended.code
    if status:
        raise LocalStackError(f"dynashard {' '.join(arguments)} failed:\n{said.getvalue()}")
    return said.getvalue()


def _build() -> None:
    """Let make build whatever is older than its sources. After `make test` nothing is."""
    (ROOT / "build").mkdir(exist_ok=True)
    with FileLock(ROOT / "build" / ".e2e.lock"):
        # The tests run in this environment, so make must not rebuild it.
        kept = [f"--old-file={name}/.done" for name in (".venv", "node_modules")]
        without_make = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
        run(["make", "--silent", *kept, *BUILT], ROOT, without_make)
