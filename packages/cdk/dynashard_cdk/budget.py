"""A budget of an environment's monthly cost, which writes e-mails."""

from typing import Final

from aws_cdk import aws_budgets as budgets
from constructs import Construct

from dynashard_cdk.deploy_settings import BudgetSettings

TAG: Final = "dynashard:environment"
"""Tag of all resources, by which the budget chooses costs. It has to be activated as a cost allocation tag."""


def add_budget(scope: Construct, environment: str, settings: BudgetSettings) -> budgets.CfnBudget:
    """Add a budget that reports shares of the amount once they are spent, and the whole if a month will exceed it."""
    of = budgets.CfnBudget
    readers = [of.SubscriberProperty(subscription_type="EMAIL", address=each) for each in settings.addresses]
    reported = [("ACTUAL", percent) for percent in settings.percents] + [("FORECASTED", 100)]
    return of(
        scope,
        "Budget",
        budget=of.BudgetDataProperty(
            budget_name=f"dynashard-{environment}",
            budget_type="COST",
            time_unit="MONTHLY",
            budget_limit=of.SpendProperty(amount=settings.dollars_a_month, unit="USD"),
            cost_filters={"TagKeyValue": [f"user:{TAG}${environment}"]},
        ),
        notifications_with_subscribers=[
            of.NotificationWithSubscribersProperty(
                notification=of.NotificationProperty(
                    notification_type=kind,
                    comparison_operator="GREATER_THAN",
                    threshold=percent,
                    threshold_type="PERCENTAGE",
                ),
                subscribers=readers,
            )
            for kind, percent in reported
        ],
    )
