"""The region of a deployed environment: that of its settings, else that of the SDK's configuration."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from dynashard_tools.aws_account import show_account
from dynashard_tools.environments import environment_in
from dynashard_tools.failure import CommandError

pytestmark = pytest.mark.unit

STORED = {"prod": {"region": "eu-west-1"}, "dev": {}}


@pytest.fixture(autouse=True)
def without_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK find no configuration of the user."""
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "environ", "region"),
    [
        ("prod", {"AWS_DEFAULT_REGION": "us-east-1", "AWS_REGION": "us-west-2"}, "eu-west-1"),
        ("dev", {"AWS_DEFAULT_REGION": "us-east-1"}, "us-east-1"),
        ("dev", {"AWS_REGION": "us-west-2"}, "us-west-2"),
        ("dev", {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-west-2"}, "us-west-2"),
        ("elsewhere", {"AWS_REGION": "", "AWS_DEFAULT_REGION": "us-east-1"}, "us-east-1"),
    ],
    ids=["settings", "default region", "region", "both", "not in cdk.json"],
)
def test_the_region_of_the_settings_comes_first(name: str, environ: Mapping[str, str], region: str) -> None:
    found = environment_in(STORED, name, environ)

    assert (found.region, found.client("dynamodb").meta.region_name) == (region, region)


def test_an_environment_without_a_region_is_refused() -> None:
    with pytest.raises(CommandError, match=r"dev has no region: set environments.dev.region in cdk.json, or AWS_DEFAU"):
        environment_in(STORED, "dev", {})


@pytest.mark.parametrize(
    ("name", "message"), [("", "empty name: name one"), ("pord", "cdk.json has no environment pord, but prod, dev")]
)
def test_a_name_that_is_no_environment_is_reported(name: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        environment_in(STORED, name, {})


def test_variables_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(CommandError, match="AWS_REGION is us-west-2 and AWS_DEFAULT_REGION is us-east-1"):
        environment_in(STORED, "dev", {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-east-1"})


def test_the_account_is_not_checked_on_a_local_aws(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Nothing listens there, so a call would fail.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    environment_in({"prod": {"region": "eu-west-1", "account": "111122223333"}}, "prod", {})

    assert "the account is not checked: http://127.0.0.1:9 is a local AWS" in capsys.readouterr().err


def test_credentials_that_cannot_be_read_end_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text('{"context": {"environments": {"dev": {"region": "eu-west-1"}}}}')
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    with pytest.raises(CommandError, match="the account of the credentials cannot be read: Unable to locate"):
        show_account("dev", answered=True)
