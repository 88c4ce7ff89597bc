"""Deploys the CDK app to a local AWS, as docs/deploying.md describes it for a real account."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from dynashard_local.account import ACCOUNT_ID, REGION
from dynashard_local.deploy.ministack import LONGEST_SECONDS, Ministack
from dynashard_local.deploy.token_issuer import AUDIENCE, serving
from dynashard_local.errors import LocalStackError
from dynashard_local.gateway.tokens import Issuer
from dynashard_local.root import backend_root

PREFIX: Final = "Dynashard-dev"
CDK: Final = Path("node_modules", ".bin", "cdk")
"""Where a backend has CDK's command line."""
_OVER_TLS: Final = ("X-Forwarded-Proto", "https")


@dataclass(frozen=True)
class Deployment:
    """The environment `dev`, deployed, with the outputs of its stacks by stack."""

    aws: Ministack
    issuer: Issuer
    outputs: Mapping[str, Mapping[str, str]]

    @property
    def host(self) -> str:
        """The `Host` header by which the local gateway distinguishes APIs."""
        return urlsplit(self.outputs[f"{PREFIX}-Api"]["ApiUrl"]).netloc

    @property
    def table(self) -> str:
        """The name of the table of items."""
        return self.outputs[f"{PREFIX}-Data"]["TableName"]

    def resources(self, stack: str, kind: str) -> dict[str, str]:
        """Return the physical names of a stack's resources of one type, by their logical ids."""
        listed = self.aws.client("cloudformation").list_stack_resources(StackName=f"{PREFIX}-{stack}")
        return {
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for each in listed["StackResourceSummaries"]
            if each["ResourceType"] == kind
        }

    def resource(self, stack: str, kind: str) -> str:
        """Return the physical name of a stack's only resource of a type."""
        (found,) = self.resources(stack, kind).values()
        return found


@contextmanager
def deployed(folder: Path, tenant_claim: str) -> Iterator[Deployment]:
    """Start a local AWS and a token issuer, and deploy what `make build/host/.done` has built.

    The folder gets everything that is written, with the assembly in `cdk.out`.

    Raises:
        LocalStackError: the local AWS does not start, or CDK fails.
    """
    with serving(folder) as (issuer, certificate), bootstrapped(folder, certificate) as aws:
        options = context_options(issuer, tenant_claim, "build/host")
        yield deploy(aws, issuer, *options, f"--output={folder / 'cdk.out'}")


def context_options(issuer: Issuer, tenant_claim: str, assets: str) -> list[str]:
    """Return the options of CDK that choose the environment `dev`, this token issuer, and a folder of built code."""
    context = {
        "env": "dev",
        "assets": assets,
        "issuer": issuer.issuer,
        "audience": AUDIENCE,
        "tenant_claim": tenant_claim,
    }
    return [f"--context={name}={value}" for name, value in context.items()]


@contextmanager
def bootstrapped(folder: Path, trust: Path) -> Iterator[Ministack]:
    """Start a local AWS that is prepared for CDK and trusts token issuers with this certificate."""
    aws = Ministack.started(folder, trust)
    try:
        cdk(aws, "bootstrap", f"aws://{ACCOUNT_ID}/{REGION}", cwd=folder)
        # The policy refuses requests without TLS, which this AWS does not have.
        aws.client("s3").delete_bucket_policy(Bucket=f"cdk-hnb659fds-assets-{ACCOUNT_ID}-{REGION}")
        yield aws
    finally:
        aws.stop()


def deploy(aws: Ministack, issuer: Issuer, *options: str) -> Deployment:
    """Deploy all stacks of the app that the options name."""
    outputs = aws.folder / "outputs.json"
    cdk(aws, "deploy", "--all", "--require-approval=never", f"--outputs-file={outputs}", *options)
    deployment = Deployment(aws, issuer, json.loads(outputs.read_text()))
    for stack in ("Changes", "Reshard", "Writer"):
        _accept_messages_without_tls(deployment, stack)
    for stack in ("Api", "Commands"):
        _allow_the_secret(deployment, stack)
    _allow_batches(deployment)
    return deployment


def _accept_messages_without_tls(deployment: Deployment, stack: str) -> None:
    """Remove the queues' policies, which refuse requests without TLS. This call claims to come from a TLS proxy."""
    sqs = deployment.aws.client("sqs")
    sqs.meta.events.register("before-sign.sqs", lambda request, **_: request.headers.add_header(*_OVER_TLS))
    for url in deployment.resources(stack, "AWS::SQS::Queue").values():
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})


def _allow_the_secret(deployment: Deployment, stack: str) -> None:
    """Allow to read the secret by its ARN: in ministack 1.5.33 `Ref` of a secret is its name, on AWS its ARN."""
    secret = deployment.resource("Api", "AWS::SecretsManager::Secret")
    if secret.startswith("arn:"):
        raise LocalStackError("ministack returns ARNs for `Ref` of a secret now: remove _allow_the_secret.")
    arn = deployment.aws.client("secretsmanager").describe_secret(SecretId=secret)["ARN"]
    _allow(deployment, stack, "secretsmanager:GetSecretValue", [arn])


def _allow_batches(deployment: Deployment) -> None:
    """Allow batches: in ministack 1.5.33 they are actions of their own, on AWS the action for one message is enough."""
    queues = {
        name: f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{url.rpartition('/')[2]}"
        for name, url in deployment.resources("Writer", "AWS::SQS::Queue").items()
    }
    fed = [arn for name, arn in queues.items() if "DeadLetters" not in name]
    _allow(deployment, "Api", "sqs:SendMessageBatch", fed)
    _allow(deployment, "Writer", "sqs:ChangeMessageVisibilityBatch", fed)


def _allow(deployment: Deployment, stack: str, action: str, resources: Sequence[str]) -> None:
    allowed = {"Effect": "Allow", "Action": action, "Resource": resources}
    deployment.aws.client("iam").put_role_policy(
        RoleName=deployment.resource(stack, "AWS::IAM::Role"),
        PolicyName=action.replace(":", "-"),
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}),
    )


def cdk(aws: Ministack, *arguments: str, cwd: Path | None = None) -> str:
    """Run CDK's command line against a local AWS, and return its output. It uses nothing else on the network.

    It runs in the backend's folder unless `cwd` names another.
    """
    root = backend_root()
    environment = {
        **aws.environment,
        "CI": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        # Without a lasting folder the construct library is unpacked each time, which takes seconds.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": os.environ.get(
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT", str(root / "build" / "jsii")
        ),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
        # The checks of `cdk synth` take eight seconds, and have nothing to add about a local AWS.
        "CDK_VALIDATION": "false",
    }
    return run([str(root / CDK), *arguments, "--no-notices"], cwd or root, environment)


def run(command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> str:
    """Run a command, and return its output. Raises `LocalStackError` if it fails; the message has its output."""
    process = subprocess.Popen(  # noqa: S603 - our own command lines
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LONGEST_SECONDS)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0:
        raise LocalStackError(f"{' '.join(command)} failed:\n{output}")
    return output
