"""A release replaces another one under traffic, and one command returns to the one before."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dynashard_local.deploy.deployment import context_options
from dynashard_local.errors import LocalStackError
from tests.e2e.deployment import PREFIX, TENANT_CLAIM, Deployment, bootstrapped, cdk, deploy, dynashard
from tests.e2e.release_marks import HEADER, Callers, invoked, marked_bundle
from tests.waiting import until

pytestmark = pytest.mark.e2e

STACKS = ("Api", "Changes", "Commands", "Reshard", "Writer")
OLD, NEW, MIXED = "old old", "new new", "old new"
MANY = 20
"""Answers of one release that a test waits for before it goes on."""


def rollback(deployment: Deployment, *options: str) -> Any:
    """Roll the deployment back by our command line, and return its summary."""
    return json.loads(dynashard(deployment.aws, "rollback", "--env=dev", "--json", *options))


def functions(deployment: Deployment) -> list[str]:
    return [name for stack in STACKS for name in deployment.resources(stack, "AWS::Lambda::Function").values()]


def live(deployment: Deployment) -> dict[str, str]:
    """The versions that run, by function."""
    client = deployment.aws.client("lambda")
    return {name: client.get_alias(FunctionName=name, Name="live")["FunctionVersion"] for name in functions(deployment)}


def released(deployment: Deployment) -> dict[str, str]:
    """The newest versions that a release published, by function. Other tests publish versions of their own."""
    client, newest = deployment.aws.client("lambda"), dict[str, str]()
    for name in functions(deployment):
        versions = client.list_versions_by_function(FunctionName=name)["Versions"]
        numbers = [int(each["Version"]) for each in versions if each.get("Description", "").startswith("release ")]
        newest[name] = str(max(numbers))
    return newest


@pytest.fixture
def second_release(deployment: Deployment) -> Iterator[dict[str, str]]:
    """The versions of the release before a second one, which is published as a deployment publishes it."""
    before, first, client = live(deployment), released(deployment), deployment.aws.client("lambda")
    for name in functions(deployment):
        variables = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        client.update_function_configuration(
            FunctionName=name, Environment={"Variables": {**variables, "RELEASE": "x"}}
        )
        version = client.publish_version(FunctionName=name, Description="release second")["Version"]
        client.update_alias(FunctionName=name, Name="live", FunctionVersion=version)
    yield first
    for name, version in before.items():
        client.update_alias(FunctionName=name, Name="live", FunctionVersion=version)


def test_one_command_returns_all_functions_to_the_release_before(
    deployment: Deployment, second_release: dict[str, str]
) -> None:
    listed = rollback(deployment, "--list")["releases"]

    with pytest.raises(LocalStackError, match=r"nobody can confirm: add --yes\. Nothing was changed"):
        rollback(deployment)
    done = rollback(deployment, "--yes")
    again = rollback(deployment, "--yes")

    assert listed[0]["release"] == "second"
    assert [(each["functions"], each["live"]) for each in listed[:2]] == [(10, 10), (10, 0)]
    assert (done["release"], done["changed"], len(done["moves"])) == (listed[1]["release"], 10, 10)
    assert (again["release"], again["changed"], again["moves"]) == (listed[1]["release"], 0, [])
    assert live(deployment) == second_release
    assert deployment.tenant("rolled-back").get("/v1/users").status_code == 200


@pytest.mark.deep
def test_no_request_meets_two_releases_while_one_replaces_the_other_and_is_rolled_back(
    deployment: Deployment, tmp_path: Path
) -> None:
    bundles = {mark: marked_bundle(tmp_path / mark, mark) for mark in ("old", "new")}
    issuer = deployment.issuer

    def release(mark: str) -> list[str]:
        return [*context_options(issuer, TENANT_CLAIM, str(bundles[mark])), f"--output={tmp_path / 'cdk' / mark}"]

    (tmp_path / "aws").mkdir()
    with bootstrapped(tmp_path / "aws", deployment.aws.trust) as aws:
        made = deploy(aws, issuer, *release("old"))
        callers = Callers(made)

        def answered(marks: str) -> Callable[[], bool]:
            wanted = callers.seen(marks) + MANY
            return lambda: bool(callers.failures) or callers.seen(marks) >= wanted

        with callers.calling():
            until(answered(OLD))
            deploy(aws, issuer, *release("new"))
            until(answered(NEW))
            before = callers.seen(NEW)
            rolled_back = rollback(made, "--yes")
            until(answered(OLD))
            # Its templates are those that are deployed, so it changes nothing.
            cdk(aws, "deploy", "--all", "--require-approval=never", f"--app={tmp_path / 'cdk' / 'new'}")
            after = callers.seen(NEW)
            until(answered(OLD))

        assert callers.failures == []
        assert callers.marks.keys() == {OLD, NEW}
        assert min(callers.marks.values()) > MANY
        assert before > 0
        assert rolled_back["changed"] == 10
        assert callers.seen(NEW) == after


@pytest.mark.deep
def test_the_marks_show_what_an_update_without_an_alias_mixes(deployment: Deployment, tmp_path: Path) -> None:
    """The two calls of an update, one after the other: layers first, as `Callers` would see them without an alias."""
    issuer = deployment.issuer
    (tmp_path / "aws").mkdir()
    bundle = marked_bundle(tmp_path / "old", "old")
    with bootstrapped(tmp_path / "aws", deployment.aws.trust) as aws:
        made = deploy(
            aws, issuer, *context_options(issuer, TENANT_CLAIM, str(bundle)), f"--output={tmp_path / 'cdk.out'}"
        )
        function, client = made.resource("Commands", "AWS::Lambda::Function"), aws.client("lambda")
        layers = [each["Arn"] for each in client.get_function_configuration(FunctionName=function)["Layers"]]

        newer = client.publish_layer_version(LayerName="newer", Content={"ZipFile": newer_domain(tmp_path)})
        kept = [each for each in layers if "Domain" not in each]
        client.update_function_configuration(FunctionName=function, Layers=[*kept, newer["LayerVersionArn"]])

        assert len(kept) == len(layers) - 1
        assert invoked(made, function)[HEADER] == MIXED
        assert invoked(made, made.outputs[f"{PREFIX}-Commands"]["CommandsFunction"])[HEADER] == OLD


def newer_domain(folder: Path) -> bytes:
    """Return the zipped layer of the entities with the newer mark."""
    bundle = marked_bundle(folder / "new", "new")
    return Path(shutil.make_archive(str(folder / "domain"), "zip", bundle / "domain")).read_bytes()
