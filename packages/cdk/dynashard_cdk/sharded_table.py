"""The two tables of the library, for any stack: items with their indexes, and the shard counts of the topology."""

from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from dynashard import schema
from dynashard_cdk.permissions import BATCH_ACTIONS, TOPOLOGY_ACTIONS, allow, key_use

RECOVERY_DAYS: Final = 35


class ShardedTable(Construct):
    """A table of items, and the topology table without which its items cannot be found.

        tables = ShardedTable(self, "Orders", protect=True)
        tables.allow_items(function)
        for name, value in tables.variables.items():
            function.add_environment(name, value)

    Both tables have point-in-time recovery and a stream: that of the items is for change data capture, that of the
    topology for what carries out resizes. Both are billed on demand unless `billing` says otherwise.

    Attributes:
        table: the items, with the index slots of `dynashard.schema`, and a TTL.
        topology: shard counts, one item a logical partition.

    Args:
        protect: keep the tables when their stack is deleted, and refuse their deletion.
        encryption: of both tables; the key that AWS manages by default. With a key of the customer, the stack must name
            its Region.
        billing: of the table of items.
        index_capacity: the properties that give each slot its capacity, by slot. An index does not inherit that of its
            table.

    Raises:
        ValueError: `index_capacity` names another slot.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        protect: bool = False,
        encryption: dynamodb.TableEncryptionV2 | None = None,
        billing: dynamodb.Billing | None = None,
        index_capacity: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if unknown := (index_capacity or {}).keys() - schema.INDEX_SLOTS:
            raise ValueError(f"index_capacity names {min(unknown)}; there are {', '.join(schema.INDEX_SLOTS)}")
        shared: dict[str, Any] = {
            "encryption": encryption or dynamodb.TableEncryptionV2.aws_managed_key(),
            "deletion_protection": protect,
            "removal_policy": RemovalPolicy.RETAIN if protect else RemovalPolicy.DESTROY,
            "point_in_time_recovery_specification": dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True, recovery_period_in_days=RECOVERY_DAYS
            ),
            # What is derived from items needs both images to see what changed. A resize request starts its execution
            # through the stream of the topology, so no second write can be missing.
            "dynamo_stream": dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        }
        self.table = self._items(billing or dynamodb.Billing.on_demand(), index_capacity or {}, shared)
        self.topology = dynamodb.TableV2(
            self,
            "Topology",
            partition_key=string(schema.TOPOLOGY_KEY),
            billing=dynamodb.Billing.on_demand(),
            **shared,
        )

    @property
    def variables(self) -> dict[str, str]:
        """The names of the tables, as environment variables of a program that passes them to `Dynashard`."""
        return {"TABLE_NAME": self.table.table_name, "TOPOLOGY_TABLE": self.topology.table_name}

    def allow_items(self, grantee: iam.IGrantable) -> None:
        """Allow to read and write items one by one, in batches, in transactions and by listings, and no more.

        With a key of the customer, allow its use through DynamoDB too.
        """
        indexes = [f"{self.table.table_arn}/index/{slot}" for slot in schema.INDEX_SLOTS]
        statements = [
            allow(BATCH_ACTIONS, [self.table.table_arn]),
            allow(["dynamodb:Query"], indexes),
            allow(TOPOLOGY_ACTIONS, [self.topology.table_arn]),
        ]
        if (key := self.table.encryption_key) is not None:
            statements.append(key_use(self, key.key_arn, ["dynamodb"]))
        for statement in statements:
            grantee.grant_principal.add_to_principal_policy(statement)

    def _items(
        self, billing: dynamodb.Billing, capacity: Mapping[str, Mapping[str, Any]], shared: Mapping[str, Any]
    ) -> dynamodb.TableV2:
        return dynamodb.TableV2(
            self,
            "Table",
            partition_key=string(schema.PK),
            sort_key=string(schema.SK),
            billing=billing,
            global_secondary_indexes=[_index(slot, capacity.get(slot, {})) for slot in schema.INDEX_SLOTS],
            time_to_live_attribute=schema.EXPIRES_AT,
            # Insights log keys, so only throttled ones are logged.
            contributor_insights_specification=dynamodb.ContributorInsightsSpecification(
                enabled=True, mode=dynamodb.ContributorInsightsMode.THROTTLED_KEYS
            ),
            **shared,
        )


def string(name: str) -> dynamodb.Attribute:
    """Return a key attribute."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _index(slot: str, capacity: Mapping[str, Any]) -> dynamodb.GlobalSecondaryIndexPropsV2:
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=slot,
        partition_key=string(schema.index_pk(slot)),
        sort_key=string(schema.index_sk(slot)),
        projection_type=dynamodb.ProjectionType.ALL,
        **capacity,
    )
