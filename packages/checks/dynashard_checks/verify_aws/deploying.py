"""Deploys the environment before it is checked."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dynashard_local.root import backend_root
from dynashard_tools.failure import CommandError

CDK: Final = Path("node_modules", ".bin", "cdk")
"""Where a backend has CDK's command line."""


def deploy(environment: str, options: Sequence[str]) -> None:
    """Deploy all stacks of an environment as docs/deploying.md describes, with what `make build` has built.

    CDK's output goes to this process's own. It is asked for no approval, because the user has confirmed the account.

    Raises:
        CommandError: CDK is not installed, or fails.
    """
    root = backend_root()
    if not (root / CDK).exists():
        raise CommandError("CDK is not installed: run `make setup`")
    command = [
        str(root / CDK),
        "deploy",
        f"--context=env={environment}",
        "--all",
        "--require-approval=never",
        *options,
    ]
    status = subprocess.run(command, cwd=root, check=False).returncode  # noqa: S603 - our own command line
    if status != 0:
        raise CommandError(f"the stacks of {environment} were not deployed: cdk ended with status {status}")
