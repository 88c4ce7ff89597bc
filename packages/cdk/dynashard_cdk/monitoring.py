"""The monitoring stack: dashboard, alarms with their topic, and saved log queries.

It only reads what the other stacks have, so it can be removed and deployed again at any time.
"""

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from dynashard_cdk.alarms import Alarms
from dynashard_cdk.budget import add_budget
from dynashard_cdk.dashboard import add_dashboard
from dynashard_cdk.function import acknowledge
from dynashard_cdk.metrics import Metrics
from dynashard_cdk.monitored import Parts
from dynashard_cdk.monitoring_alarms import add_alarms
from dynashard_cdk.saved_queries import add_queries
from dynashard_cdk.settings import Settings


class MonitoringStack(Stack):
    """Watches one environment.

    Attributes:
        topic: what all alarms notify.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, parts: Parts, **kwargs: Any) -> None:
        super().__init__(scope, construct_id, description=f"Dynashard monitoring ({settings.name})", **kwargs)
        self.settings = settings
        metrics = Metrics(settings, parts.data.table)
        self.topic = self._topic()
        add_alarms(Alarms(self, settings, self.topic), metrics, parts)
        dashboard = add_dashboard(self, metrics, parts)
        add_queries(self, settings.name, parts.logs)
        if settings.budget is not None:
            add_budget(self, settings.name, settings.budget)
        CfnOutput(self, "AlarmTopic", value=self.topic.topic_arn)
        CfnOutput(self, "DashboardName", value=dashboard.dashboard_name)

    def _topic(self) -> sns.Topic:
        # Not encrypted with a key of SNS, which CloudWatch may not use. Alarms hold names and figures, no data.
        topic = sns.Topic(self, "Alarms", display_name=f"Dynashard {self.settings.name}", enforce_ssl=True)
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": self.account}},
            )
        )
        for address in self.settings.monitoring.addresses:
            url = address.startswith("https://")
            subscribed = topic.add_subscription(
                subscriptions.UrlSubscription(address) if url else subscriptions.EmailSubscription(address)
            )
            acknowledge(
                subscribed,
                "Serverless::Serverless-SNSRedrivePolicy",
                "An alarm that did not arrive is still shown by CloudWatch; an old one in a queue helps nobody.",
            )
        return topic
