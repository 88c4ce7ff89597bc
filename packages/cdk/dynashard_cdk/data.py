"""The data stack: the table, the topology table and the idempotency table.

It has everything that must outlive a deployment of the code.
"""

from collections.abc import Sequence
from typing import Any

from aws_cdk import CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct

from dynashard import schema
from dynashard_cdk.capacity import CapacitySteps, billing, index_capacity
from dynashard_cdk.encryption import customer_key
from dynashard_cdk.function import PURPOSES
from dynashard_cdk.permissions import IDEMPOTENCY_ACTIONS, TOPOLOGY_ACTIONS, allow, metrics_read
from dynashard_cdk.sections import ProvisionedPrewarm, UserPoolAuth
from dynashard_cdk.settings import Settings
from dynashard_cdk.sharded_table import ShardedTable, string
from dynashard_cdk.user_pool import UserPool


class DataStack(Stack):
    """Tables of one environment.

    Attributes:
        table: the items of all entities, with three index slots; the restored one if there is one.
        topology: shard counts, one item a logical partition; the restored ones if there are any.
        idempotency: answers to requests with an `Idempotency-Key`.
        user_pool: the users; None with an issuer of the settings.
        capacity_steps: what changes the table's capacity by schedule; None without a schedule.
        stop_loss_role: the role that switches the table back to on-demand; None unless a pre-warm provisions the table.
            It is here so that it outlives a pre-warm stack that is rolled back.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, **kwargs: Any) -> None:
        super().__init__(scope, construct_id, description=f"Dynashard tables ({settings.name})", **kwargs)
        self.settings = settings
        tables = self._sharded_tables()
        self.table, self.topology = self._in_use(tables.table, tables.topology)
        self.idempotency = self._idempotency_table()
        self.user_pool = UserPool(self, "Users", settings=settings) if isinstance(settings.auth, UserPoolAuth) else None
        self.stop_loss_role = self._stop_loss_role() if isinstance(settings.prewarm, ProvisionedPrewarm) else None
        self.capacity_steps = self._capacity_steps()
        for name, table in (
            ("Table", self.table),
            ("Topology", self.topology),
            ("Idempotency", self.idempotency),
        ):
            CfnOutput(self, f"{name}Name", value=table.table_name)
        # Commands and Python clients must assume what the functions do.
        CfnOutput(self, "ClockSeconds", value=str(settings.topology_clock_seconds))
        CfnOutput(self, "AheadSeconds", value=str(settings.topology_ahead_seconds))

    @property
    def stream_arn(self) -> str:
        """The stream of the table of items."""
        return _stream_of(self.table)

    @property
    def topology_stream_arn(self) -> str:
        """The stream of the topology table."""
        return _stream_of(self.topology)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of functions that work on the items, as `dynashard_serving.settings` reads them."""
        return {
            "ENVIRONMENT": PURPOSES[self.settings.purpose],
            "ENVIRONMENT_NAME": self.settings.name,
            "TABLE_NAME": self.table.table_name,
            "TOPOLOGY_TABLE": self.topology.table_name,
            "TOPOLOGY_LEASE_SECONDS": str(self.settings.topology_lease_seconds),
            "TOPOLOGY_OPERATION_SECONDS": str(self.settings.longest_operation_seconds),
            "TOPOLOGY_CLOCK_SECONDS": str(self.settings.topology_clock_seconds),
            "TOPOLOGY_AHEAD_SECONDS": str(self.settings.topology_ahead_seconds),
            "TRANSPORT": self.settings.transport,
            "LOG_ITEM_KEYS": str(self.settings.logs.item_keys).lower(),
            **({"TRACE_CALLS": "true"} if self.settings.trace_calls else {}),
            **self.settings.growth.variables,
        }

    def allow_writing(self, actions: Sequence[str]) -> list[iam.PolicyStatement]:
        """Return the statements that allow these actions on items under a view of the topology."""
        return [
            allow(actions, [self.table.table_arn]),
            allow(TOPOLOGY_ACTIONS, [self.topology.table_arn]),
            # Explain a throttle without a reason by the load of the table and its limit.
            metrics_read(),
            allow(["dynamodb:DescribeTable"], [self.table.table_arn]),
        ]

    def allow_serving(self, cursor_secret: secrets.ISecret, actions: Sequence[str]) -> list[iam.PolicyStatement]:
        """Return the statements that allow to serve items to callers by these actions."""
        indexes = [f"{self.table.table_arn}/index/{slot}" for slot in schema.INDEX_SLOTS]
        return [
            *self.allow_writing(actions),
            allow(["dynamodb:Query"], indexes),
            allow(IDEMPOTENCY_ACTIONS, [self.idempotency.table_arn]),
            allow(["secretsmanager:GetSecretValue"], [cursor_secret.secret_arn]),
        ]

    def _in_use(
        self, table: dynamodb.TableV2, topology: dynamodb.TableV2
    ) -> tuple[dynamodb.ITableV2, dynamodb.ITableV2]:
        """Return the tables that everything uses: those of this stack, or restored ones."""
        restored = self.settings.restored
        if restored is None:
            return table, topology
        # Other stacks import these until they are deployed too. CloudFormation refuses to remove them before.
        for each in (table, topology):
            for value in (each.table_name, each.table_arn, _stream_of(each)):
                self.export_value(value)
        of = dynamodb.TableV2.from_table_attributes
        return (
            of(self, "RestoredTable", table_name=restored.table, table_stream_arn=restored.table_stream),
            of(self, "RestoredTopology", table_name=restored.topology, table_stream_arn=restored.topology_stream),
        )

    def _sharded_tables(self) -> ShardedTable:
        settings = self.settings
        tables = ShardedTable(
            self,
            "Tables",
            protect=settings.production,
            encryption=self._encryption(),
            billing=billing(settings.table),
            index_capacity={slot: index_capacity(settings.table, slot) for slot in schema.INDEX_SLOTS},
        )
        _name(tables.table, "Table")
        _name(tables.topology, "Topology")
        return tables

    def _idempotency_table(self) -> dynamodb.TableV2:
        production = self.settings.production
        table = dynamodb.TableV2(
            self,
            "Idempotency",
            partition_key=string(schema.IDEMPOTENCY_KEY),
            billing=dynamodb.Billing.on_demand(),
            time_to_live_attribute=schema.IDEMPOTENCY_TTL,
            encryption=self._encryption(),
            deletion_protection=production,
            removal_policy=RemovalPolicy.RETAIN if production else RemovalPolicy.DESTROY,
        )
        _name(table, "Idempotency")
        return table

    def _stop_loss_role(self) -> iam.Role:
        role = iam.Role(
            self,
            "StopLossRole",
            description=f"Switches the table back to on-demand ({self.settings.name})",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": self.account}}
            ),
        )
        role.add_to_policy(iam.PolicyStatement(actions=["dynamodb:UpdateTable"], resources=[self.table.table_arn]))
        return role

    def _capacity_steps(self) -> CapacitySteps | None:
        settings = self.settings
        if not settings.table.schedule:
            return None
        steps = CapacitySteps(self, "Capacity", environment=settings.name, settings=settings.table, table=self.table)
        # The monitoring stack of 0.1.0 imports it until it is deployed too.
        self.export_value(steps.group.ref)
        return steps

    def _encryption(self) -> dynamodb.TableEncryptionV2:
        key = customer_key(self, self.settings)
        of = dynamodb.TableEncryptionV2
        return of.aws_managed_key() if key is None else of.customer_managed_key(key)


def _name(table: dynamodb.TableV2, name: str) -> None:
    """Name a table in the template: the local stack and a restore find it so, and no version of CDK may change that."""
    resource = table.node.default_child
    assert isinstance(resource, dynamodb.CfnGlobalTable)  # noqa: S101 -- a fact about CDK that types cannot say
    resource.override_logical_id(name)


def _stream_of(table: dynamodb.ITableV2) -> str:
    assert table.table_stream_arn is not None  # noqa: S101 -- a fact about CDK that types cannot say
    return table.table_stream_arn
