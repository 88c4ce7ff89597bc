"""The CDK app, deployed to a local AWS as `docs/deploying.md` says, and callers of its API."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from filelock import FileLock

from local.settings import ROOT
from local.tokens import Issuer
from tests.e2e.ministack import ACCOUNT, REGION, Ministack
from tests.e2e.token_issuer import AUDIENCE, serving
from tests.patience import PATIENCE_SECONDS

TENANT_CLAIM = "org_id"
PREFIX = "Dynashard-dev"
CDK = ROOT / "node_modules" / ".bin" / "cdk"
FORWARDED = ("X-Forwarded-Proto", "https")
BUILT = ("build/host/.done", ".venv-ministack/.done")


@dataclass(frozen=True)
class Deployment:
    """The environment `dev`, deployed.

    Attributes:
        aws: the local AWS it runs on.
        issuer: whose tokens its gateway takes.
        outputs: outputs of its stacks.
    """

    aws: Ministack
    issuer: Issuer
    outputs: Mapping[str, Mapping[str, str]]

    @property
    def assembly(self) -> Path:
        """What was synthesised, with its assets."""
        return self.aws.folder.parent / "cdk.out"

    @property
    def host(self) -> str:
        return urlsplit(self.outputs[f"{PREFIX}-Api"]["ApiUrl"]).netloc

    @property
    def table(self) -> str:
        return self.outputs[f"{PREFIX}-Data"]["TableName"]

    def client(self, token: str | None = None) -> httpx.Client:
        """A caller with this token. The local gateway tells APIs apart by the name that they are called by."""
        headers = {"Host": self.host} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        return httpx.Client(base_url=self.aws.url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False)

    def tenant(self, tenant: str) -> httpx.Client:
        """A caller of this tenant."""
        return self.client(self.issuer.issue({TENANT_CLAIM: tenant}))

    def resources(self, stack: str, kind: str) -> dict[str, str]:
        """Physical names of a stack's resources of one type, by the names they have in the template."""
        listed = self.aws.client("cloudformation").list_stack_resources(StackName=f"{PREFIX}-{stack}")
        return {
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for each in listed["StackResourceSummaries"]
            if each["ResourceType"] == kind
        }

    def resource(self, stack: str, kind: str) -> str:
        """Physical name of the one resource of a type in a stack."""
        (found,) = self.resources(stack, kind).values()
        return found


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Build what is deployed, start a local AWS, prepare it with `cdk bootstrap`, and `cdk deploy` to it."""
    _build()
    with serving(folder) as (issuer, certificate), bootstrapped(folder, certificate) as aws:
        yield deploy(aws, issuer, *_context(issuer), f"--output={folder / 'cdk.out'}")


@contextmanager
def bootstrapped(folder: Path, trust: Path) -> Iterator[Ministack]:
    """A local AWS that is prepared for CDK and trusts token issuers with this certificate."""
    aws = Ministack.started(folder, trust)
    try:
        cdk(aws, "bootstrap", f"aws://{ACCOUNT}/{REGION}", cwd=folder)
        # It refuses whoever comes without TLS, and this AWS has none.
        aws.client("s3").delete_bucket_policy(Bucket=f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}")
        yield aws
    finally:
        aws.stop()


def deploy(aws: Ministack, issuer: Issuer, *options: str) -> Deployment:
    """Deploy all stacks of what the options name."""
    outputs = aws.folder / "outputs.json"
    cdk(aws, "deploy", "--all", "--require-approval=never", f"--outputs-file={outputs}", *options)
    deployment = Deployment(aws, issuer, json.loads(outputs.read_text()))
    for stack in ("Changes", "Reshard", "Writer"):
        _take_messages_without_tls(deployment, stack)
    for stack in ("Api", "Commands"):
        _allow_the_secret(deployment, stack)
    _allow_batches(deployment)
    return deployment


def _take_messages_without_tls(deployment: Deployment, stack: str) -> None:
    """Remove the policies of queues: they refuse whoever comes without TLS, rightly, and this AWS has none.

    They refuse us, too: so this one call says that it came over TLS, as far as a proxy before the gateway.
    """
    sqs = deployment.aws.client("sqs")
    sqs.meta.events.register("before-sign.sqs", lambda request, **_: request.headers.add_header(*FORWARDED))
    for url in deployment.resources(stack, "AWS::SQS::Queue").values():
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})


def _allow_the_secret(deployment: Deployment, stack: str) -> None:
    """Do what ministack 1.5.33 gets wrong: its `Ref` of a secret is the name, where AWS's is the ARN.

    So the role's statement names no resource that exists. This adds the one that it means.
    """
    secret = deployment.resource("Api", "AWS::SecretsManager::Secret")
    assert not secret.startswith("arn:"), "ministack has learned what the Ref of a secret is: remove this function"
    arn = deployment.aws.client("secretsmanager").describe_secret(SecretId=secret)["ARN"]
    _allow(deployment, stack, "secretsmanager:GetSecretValue", [arn])


def _allow_batches(deployment: Deployment) -> None:
    """Do what ministack 1.5.33 gets wrong: on AWS the right to do something with a message is that for a batch."""
    queues = {
        name: f"arn:aws:sqs:{REGION}:{ACCOUNT}:{url.rpartition('/')[2]}"
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


def cdk(aws: Ministack, *arguments: str, cwd: Path = ROOT) -> str:
    """Run CDK's command line against a local AWS, and return what it said; it asks nothing else on the network."""
    environment = {
        **aws.environment,
        "CI": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": os.environ["JSII_RUNTIME_PACKAGE_CACHE_ROOT"],
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }
    return _run([str(CDK), *arguments, "--no-notices"], cwd, environment)


def dynashard(aws: Ministack, *arguments: str) -> str:
    """Run our own command line against a local AWS, and return what it said."""
    return _run([str(ROOT / ".venv" / "bin" / "dynashard"), *arguments], ROOT, aws.environment)


def _context(issuer: Issuer) -> Sequence[str]:
    settings = {
        "env": "dev",
        "assets": "build/host",
        "issuer": issuer.issuer,
        "audience": AUDIENCE,
        "tenant_claim": TENANT_CLAIM,
    }
    return [f"--context={name}={value}" for name, value in settings.items()]


def _build() -> None:
    """Have make build what is older than its sources: after `make test` has, nothing."""
    (ROOT / "build").mkdir(exist_ok=True)
    with FileLock(ROOT / "build" / ".e2e.lock"):
        # This very environment runs the tests: it is not made anew under them.
        kept = [f"--old-file={name}/.done" for name in (".venv", "node_modules")]
        _run(["make", "--silent", *kept, *BUILT], ROOT, _without_make(os.environ))


def _without_make(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}


def _run(command: Sequence[str], cwd: Path, environment: Mapping[str, Any]) -> str:
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
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    assert process.returncode == 0, f"{' '.join(command)}:\n{said}"
    return said
