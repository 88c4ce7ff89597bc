"""A second deployment over an existing one, and its destruction."""

from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment, bootstrapped, cdk, deploy

pytestmark = pytest.mark.e2e


@pytest.mark.deep
def test_deploying_again_keeps_the_data_and_destroying_leaves_nothing(deployment: Deployment, tmp_path: Path) -> None:
    app = f"--app={deployment.assembly}"
    user = {"email": "ada@example.com", "display_name": "Ada"}
    with bootstrapped(tmp_path, deployment.aws.trust) as aws:
        first = deploy(aws, deployment.issuer, app)
        location = first.tenant("kept").post("/v1/users", json=user).headers["location"]

        second = deploy(aws, deployment.issuer, app)
        kept = second.tenant("kept").get(location)
        cdk(aws, "destroy", "--all", "--force", app)

        assert second.outputs == first.outputs
        assert kept.json()["email"] == "ada@example.com"
        assert aws.client("dynamodb").list_tables()["TableNames"] == []
        assert aws.client("lambda").list_functions()["Functions"] == []
        assert aws.client("apigatewayv2").get_apis()["Items"] == []
        assert aws.client("logs").describe_log_groups()["logGroups"] == []
        assert aws.client("sqs").list_queues().get("QueueUrls", []) == []
        assert aws.client("lambda").list_event_source_mappings()["EventSourceMappings"] == []
        assert aws.client("secretsmanager").list_secrets()["SecretList"] == []
