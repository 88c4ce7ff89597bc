"""Commands refuse credentials of another account than that of the environment's settings."""

from collections.abc import Iterator

import pytest
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID

from dynashard_tools.environments import environment_in
from dynashard_tools.failure import CommandError

pytestmark = pytest.mark.infra


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield


def test_credentials_of_the_account_are_accepted() -> None:
    stored = {"prod": {"region": "eu-west-1", "account": DEFAULT_ACCOUNT_ID}}

    assert environment_in(stored, "prod", {}).region == "eu-west-1"


def test_credentials_of_another_account_are_refused_by_name() -> None:
    stored = {"prod": {"region": "eu-west-1", "account": "999988887777"}}

    with pytest.raises(CommandError) as refused:
        environment_in(stored, "prod", {})

    assert f"the credentials are of account {DEFAULT_ACCOUNT_ID} (arn:aws:" in str(refused.value)
    assert "prod is in account 999988887777" in str(refused.value)
    assert str(refused.value).endswith("Nothing was done")
