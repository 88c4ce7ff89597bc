"""What `dynashard verify-aws --clean` removes: only what has both the prefix and the tag. AWS is moto."""

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from dynashard_checks.verify_aws.account import Account
from dynashard_checks.verify_aws.scratch import PREFIX, TAG
from dynashard_checks.verify_aws.verification import clean

pytestmark = pytest.mark.infra

SCRATCH = {TAG: "r1"}
NAME = f"{PREFIX}r1-x"
OTHERS = f"{PREFIX}audit"
"""A name in an environment called `verify`, which begins as those of scratch resources."""


class UserPools:
    """As much of Cognito as `--clean` uses; moto's needs a package that is not installed here."""

    def __init__(self) -> None:
        self.tags: dict[str, dict[str, str]] = {}

    def get_paginator(self, operation: str) -> "UserPools":
        assert operation == "list_user_pools"
        return self

    def paginate(self, MaxResults: int) -> list[dict[str, Any]]:  # noqa: N803 - as botocore
        assert MaxResults > 0
        return [{"UserPools": [{"Id": name, "Name": name}]} for name in self.tags]

    def describe_user_pool(self, UserPoolId: str) -> dict[str, Any]:  # noqa: N803
        return {"UserPool": {"UserPoolTags": self.tags[UserPoolId]}}

    def delete_user_pool(self, UserPoolId: str) -> None:  # noqa: N803
        del self.tags[UserPoolId]


@pytest.fixture
def user_pools() -> UserPools:
    return UserPools()


@pytest.fixture
def account(user_pools: UserPools, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    for name, value in {"ACCESS_KEY_ID": "any", "SECRET_ACCESS_KEY": "any", "DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with mock_aws():
        yield Account(_clients={("cognito-idp", True): user_pools})


def create(account: Account, name: str, tags: dict[str, str]) -> None:
    """Create a log group, a queue and a table."""
    account.client("logs").create_log_group(logGroupName=name, tags=tags)
    account.client("sqs").create_queue(QueueName=name, tags=tags)
    account.client("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )


def present(account: Account) -> dict[str, list[str]]:
    """Return the names of what is there, by service."""
    return {
        "logs": [each["logGroupName"] for each in account.client("logs").describe_log_groups()["logGroups"]],
        "sqs": [url.rpartition("/")[2] for url in account.client("sqs").list_queues().get("QueueUrls", [])],
        "dynamodb": list(account.client("dynamodb").list_tables()["TableNames"]),
    }


@pytest.mark.parametrize(
    ("name", "tags", "left"),
    [(NAME, SCRATCH, []), (OTHERS, {"team": "audit"}, [OTHERS]), (OTHERS, {}, [OTHERS]), ("elses", SCRATCH, ["elses"])],
    ids=["scratch", "another tag", "no tag", "another prefix"],
)
def test_only_what_has_the_prefix_and_the_tag_is_removed(
    name: str, tags: dict[str, str], left: list[str], account: Account, user_pools: UserPools
) -> None:
    create(account, name, tags)
    user_pools.tags[name] = tags

    clean(account, as_json=False)

    assert present(account) == {"logs": left, "sqs": left, "dynamodb": left}
    assert list(user_pools.tags) == left
