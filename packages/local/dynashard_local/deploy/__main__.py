"""`python -m dynashard_local.deploy`: deploys the stacks to a local AWS, and serves them until Ctrl-C."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dynashard_local import stopping
from dynashard_local.deploy.deployment import Deployment, deployed
from dynashard_local.errors import LocalStackError

TENANT_CLAIM: Final = "tenant_id"
TOKEN_SECONDS: Final = 24 * 3600
"""As long as the certificate of the token issuer."""


def main(
    deploy: Callable[[Path, str], AbstractContextManager[Deployment]] = deployed, tenant_claim: str = TENANT_CLAIM
) -> int:
    """Deploy, print how to call the API, and serve it.

    Returns:
        The exit status: 0 after Ctrl-C or SIGTERM, 1 after one message on stderr that says what is wrong.
    """
    sys.stdout.write("Deploying to a local AWS, which takes a minute or two ...\n")
    sys.stdout.flush()
    try:
        with TemporaryDirectory(prefix="dynashard-") as folder, deploy(Path(folder), tenant_claim) as deployment:
            sys.stdout.write(banner(deployment, tenant_claim))
            sys.stdout.flush()
            deployment.aws.process.wait()
            sys.stderr.write(f"The local AWS ended by itself. The end of its log:\n{deployment.aws.log_tail()}")
            return 1
    except LocalStackError as error:
        sys.stderr.write(f"dynashard: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; the deployment and its data are gone.\n")
        return 0


def banner(deployment: Deployment, tenant_claim: str) -> str:
    """Return where the deployment is, and commands that call it."""
    url = f"{deployment.aws.url}/v1"
    token = deployment.issuer.issue({tenant_claim: "abc"}, lifetime_seconds=TOKEN_SECONDS)
    variables = " ".join(f"{name}={value}" for name, value in deployment.aws.variables.items())
    return f"""
Dynashard is deployed to a local AWS    (Ctrl-C removes it)
  API       {url}, with the header Host: {deployment.host}

Try:
  TOKEN={token}
  curl -s {url}/users -H 'Host: {deployment.host}' -H "Authorization: Bearer $TOKEN"

Commands, in another terminal:
  export {variables}
  .venv/bin/dynashard put users tenant_id=abc id=ada email=ada@example.com display_name=Ada --env dev
  .venv/bin/dynashard get users tenant_id=abc id=ada --env dev
  .venv/bin/dynashard topology --env dev
  .venv/bin/dynashard queue status --env dev
  .venv/bin/dynashard logs tenant abc --env dev
  .venv/bin/dynashard logs server-errors --env dev
"""


if __name__ == "__main__":
    stopping.stop_in_order()
    sys.exit(main())
