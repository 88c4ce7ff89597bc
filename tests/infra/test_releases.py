"""Releases: every function publishes a version, and everything addresses the alias that points at it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynashard.schema import TOPOLOGY_UNDERSTOOD
from dynashard_cdk.build import assets_of
from dynashard_cdk.bundling import Bundle
from dynashard_cdk.release import LIVE, UNDERSTANDS, release_of
from dynashard_cdk.settings import Settings, load
from tests.infra.templates import ROOT, Templates, context, of_type

pytestmark = pytest.mark.infra

FUNCTION, VERSION, ALIAS = (f"AWS::Lambda::{kind}" for kind in ("Function", "Version", "Alias"))
STACKS = ("Api", "Changes", "Commands", "Prewarm", "Reshard", "Writer")


def references(value: Any) -> Iterator[str]:
    """Yield the logical ids that a value refers to."""
    if isinstance(value, list):
        for each in value:
            yield from references(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name == "Ref":
                yield each
            elif name == "Fn::GetAtt":
                yield each[0]
            else:
                yield from references(each)


@pytest.mark.parametrize("stack", STACKS)
def test_every_function_publishes_a_version_that_stays_and_an_alias_points_at_it(dev: Templates, stack: str) -> None:
    functions, versions = of_type(dev[stack], FUNCTION), of_type(dev[stack], VERSION)
    aliases = of_type(dev[stack], ALIAS).values()

    pointed = {alias["Properties"]["FunctionName"]["Ref"]: alias["Properties"] for alias in aliases}
    published = {version["Properties"]["FunctionName"]["Ref"]: name for name, version in versions.items()}

    assert functions.keys() == pointed.keys() == published.keys()
    for name, alias in pointed.items():
        assert (alias["Name"], alias["FunctionVersion"]) == (LIVE, {"Fn::GetAtt": [published[name], "Version"]})
    for version in versions.values():
        # A deployment that fails takes the versions back that it has published.
        assert (version["DeletionPolicy"], version["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


@pytest.mark.parametrize("stack", STACKS)
def test_the_versions_of_a_release_name_the_records_that_it_understands(dev: Templates, stack: str) -> None:
    for function in of_type(dev[stack], FUNCTION).values():
        named = function["Properties"]["Environment"]["Variables"][UNDERSTANDS]
        # As `dynashard rollback` reads it from the configuration of a version.
        assert named.split(",") == list(TOPOLOGY_UNDERSTOOD)


@pytest.mark.parametrize("stack", STACKS)
def test_nothing_addresses_a_function_without_its_alias(dev: Templates, stack: str) -> None:
    functions = of_type(dev[stack], FUNCTION).keys()
    # A configuration of asynchronous invocations names the alias beside the function.
    named = {VERSION, ALIAS, "AWS::Lambda::EventInvokeConfig"}
    others = {name: each for name, each in dev[stack]["Resources"].items() if each["Type"] not in named}

    direct = {name for name, each in others.items() if functions & set(references(each.get("Properties", {})))}
    outputs = [each["Value"] for each in dev[stack].get("Outputs", {}).values() if "Export" not in each]

    assert direct == set()
    assert functions.isdisjoint(references(outputs))
    for each in of_type(dev[stack], "AWS::Lambda::EventInvokeConfig").values():
        assert each["Properties"]["Qualifier"] == LIVE


def test_mappings_rules_and_the_gateway_invoke_the_alias(dev: Templates) -> None:
    invoking = {
        "Api": "AWS::ApiGatewayV2::Integration",
        "Changes": "AWS::Lambda::EventSourceMapping",
        "Reshard": "AWS::Events::Rule",
        "Writer": "AWS::Lambda::EventSourceMapping",
    }

    for stack, kind in invoking.items():
        aliases = of_type(dev[stack], ALIAS).keys()
        assert all(aliases & set(references(each["Properties"])) for each in of_type(dev[stack], kind).values())
        permissions = of_type(dev[stack], "AWS::Lambda::Permission").values()
        assert {each["Properties"]["FunctionName"]["Ref"] for each in permissions} <= aliases


@pytest.mark.parametrize("stack", ["Reshard", "Prewarm"])
def test_the_state_machine_may_invoke_the_aliases_of_its_steps_and_nothing_else(dev: Templates, stack: str) -> None:
    [machine] = of_type(dev[stack], "AWS::StepFunctions::StateMachine").values()
    invoked = {name for name in references(machine["Properties"]["DefinitionString"]) if "Live" in name}

    allowed = [
        name
        for policy in of_type(dev[stack], "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "lambda:InvokeFunction"
        for name in references(statement["Resource"])
    ]

    assert sorted(allowed) == sorted(invoked)
    assert invoked <= of_type(dev[stack], ALIAS).keys()


@pytest.fixture
def built(tmp_path: Path) -> Bundle:
    """A bundle with one file in each asset."""
    for asset in assets_of(ROOT):
        (tmp_path / asset.name).mkdir(parents=True)
        (tmp_path / asset.name / "module.py").write_text(f'"""{asset.name}."""')
    return Bundle(tmp_path, tmp_path)


@pytest.fixture
def settings() -> Settings:
    return load(context("dev")["environments"], "dev")


@pytest.mark.parametrize("asset", ["domain", "sharding", "functions/api"])
def test_changed_code_of_a_layer_or_a_function_is_a_new_release(built: Bundle, settings: Settings, asset: str) -> None:
    before = release_of(built.folders, settings)
    assert built.folder is not None

    again = release_of(built.folders, settings)
    (built.folder / asset / "module.py").write_text("changed")

    assert before == again
    assert release_of(built.folders, settings) != before


def test_a_changed_setting_is_a_new_release_and_a_moved_file_too(built: Bundle, settings: Settings) -> None:
    before = release_of(built.folders, settings)
    assert built.folder is not None

    other = release_of(built.folders, settings.model_copy(update={"log_level": "DEBUG"}))
    (built.folder / "domain" / "module.py").rename(built.folder / "domain" / "renamed.py")
    moved = release_of(built.folders, settings)

    assert len({before, other, moved}) == 3


def test_a_new_release_publishes_versions_of_functions_whose_code_is_the_same(
    built: Bundle, settings: Settings, tmp_path: Path
) -> None:
    before, after = [published(built, settings, mark, tmp_path / mark) for mark in ("one", "two")]

    assert before.keys().isdisjoint(after.keys())
    assert [each["Properties"]["Description"] for each in after.values()] == ["release two"]


def published(bundle: Bundle, settings: Settings, release: str, outdir: Path) -> dict[str, Any]:
    """Return the versions of a stack that is deployed as a release."""
    # Loading CDK takes seconds of each process: of those that synthesise, not of all that collect tests.
    from aws_cdk import App  # noqa: PLC0415

    from dynashard_cdk.changes import ChangesStack  # noqa: PLC0415
    from dynashard_cdk.data import DataStack  # noqa: PLC0415

    app = App(outdir=str(outdir), context=context("dev"), analytics_reporting=False)
    data = DataStack(app, "Dynashard-dev-Data", settings=settings)
    ChangesStack(app, "Dynashard-dev-Changes", settings=settings, data=data, bundle=bundle, release=release)
    app.synth()
    return of_type(Templates(outdir, "dev")["Changes"], VERSION)
