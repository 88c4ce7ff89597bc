"""Creates the template's tables in the local engine."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dynashard_local.account import CREDENTIALS, REGION
from dynashard_local.errors import LocalStackError
from dynashard_local.template import Resource, Templates

TABLE_TYPES = ("AWS::DynamoDB::GlobalTable", "AWS::DynamoDB::Table")


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The CreateTable request of a table, and its TTL attribute if it has one."""

    create: Mapping[str, Any]
    ttl_attribute: str | None = None

    @property
    def name(self) -> str:
        """The table's name."""
        return str(self.create["TableName"])


def table_plans(templates: Templates) -> list[TablePlan]:
    """Return the template's tables with keys, indexes, projections, streams and TTL; local engines have no capacity."""
    return [_plan(templates, resource) for resource in templates.of_type(*TABLE_TYPES)]


def _plan(templates: Templates, resource: Resource) -> TablePlan:
    properties = templates.resolve(resource.stack, resource.properties)
    create: dict[str, Any] = {
        "TableName": resource.name,
        "KeySchema": properties["KeySchema"],
        "AttributeDefinitions": properties["AttributeDefinitions"],
        "BillingMode": "PAY_PER_REQUEST",
    }
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if properties.get(kind):
            create[kind] = [
                {key: index[key] for key in ("IndexName", "KeySchema", "Projection")} for index in properties[kind]
            ]
    stream = properties.get("StreamSpecification")
    if stream:
        create["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream["StreamViewType"]}
    ttl = properties.get("TimeToLiveSpecification") or {}
    return TablePlan(create, ttl.get("AttributeName") if ttl.get("Enabled") else None)


def engine_client(endpoint: str, service: str = "dynamodb", **options: Any) -> Any:
    """Return boto3's client of a service of the local engine, with `options` of its configuration."""
    # Importing the SDK takes a fifth of a second, and most commands and workers do not need it.
    import boto3  # noqa: PLC0415
    import botocore.session  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    # The user's AWS configuration and proxy are ignored.
    nothing = {"profile": (None, None, None, None), "config_file": (None, None, os.devnull, None)}
    session = botocore.session.Session(session_vars=nothing)
    session.set_credentials(CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
    config = Config(retries={"total_max_attempts": 2}, connect_timeout=5, read_timeout=30, proxies={}, **options)
    ours = boto3.session.Session(botocore_session=session, region_name=REGION)
    return ours.client(service, endpoint_url=endpoint, config=config)


def ensure_tables(client: Any, plans: Iterable[TablePlan], *, data: str) -> list[str]:
    """Create missing tables, and check that existing ones fit the template. Return the names of those created.

    An existing table without a stream gets one; earlier writes are not in it. `data` names the data in messages.

    Raises:
        LocalStackError: a table has other keys or lacks an index, or the engine cannot read its data.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as above

    try:
        return [plan.name for plan in plans if _ensure(client, plan, data)]
    except ClientError as error:
        what = error.response.get("Error", {}).get("Message") or str(error)
        raise LocalStackError(
            f"The engine cannot use its data in {data} ({what}): if it is damaged, restore it from a copy or move "
            "it away to begin with empty tables."
        ) from None
    except BotoCoreError as error:
        raise LocalStackError(f"The DynamoDB engine does not answer: {error}") from None


def _ensure(client: Any, plan: TablePlan, data: str) -> bool:
    try:
        present = client.describe_table(TableName=plan.name)["Table"]
    except client.exceptions.ResourceNotFoundException:
        client.create_table(**plan.create)
        present = None
    if present is not None:
        problem = difference(plan.create, present)
        if problem:
            raise LocalStackError(
                f"Table {plan.name} in {data} does not fit the template: {problem}. Move that data away (or "
                "set DATA_DIR to another folder) to begin with empty tables."
            )
        _ensure_stream(client, plan, present)
    if plan.ttl_attribute is not None:
        _ensure_ttl(client, plan.name, plan.ttl_attribute)
    return present is None


def _ensure_stream(client: Any, plan: TablePlan, present: Mapping[str, Any]) -> None:
    wanted = plan.create.get("StreamSpecification")
    if wanted and not present.get("StreamSpecification", {}).get("StreamEnabled"):
        client.update_table(TableName=plan.name, StreamSpecification=wanted)


def _ensure_ttl(client: Any, table: str, attribute: str) -> None:
    present = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if present.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") and present.get("AttributeName") == attribute:
        return
    specification = {"Enabled": True, "AttributeName": attribute}
    client.update_time_to_live(TableName=table, TimeToLiveSpecification=specification)


def difference(wanted: Mapping[str, Any], present: Mapping[str, Any]) -> str:
    """Return the difference between a CreateTable request and an existing table; more indexes are none."""
    if _keys(wanted, wanted) != _keys(present, present):
        return f"its keys are {_shown(_keys(present, present))}, not {_shown(_keys(wanted, wanted))}"
    views = [table.get("StreamSpecification", {}).get("StreamViewType") for table in (wanted, present)]
    if None not in views and views[0] != views[1]:
        return f"its stream has {views[1]}, not {views[0]}"
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        there = {index["IndexName"]: index for index in present.get(kind) or []}
        for index in wanted.get(kind) or []:
            name = index["IndexName"]
            if name not in there:
                return f"index {name} is missing"
            if _keys(wanted, index) != _keys(present, there[name]):
                return f"the keys of index {name} are {_shown(_keys(present, there[name]))}"
            if index["Projection"] != there[name]["Projection"]:
                return f"index {name} projects other attributes"
    return ""


def _keys(table: Mapping[str, Any], of: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    types = {entry["AttributeName"]: entry["AttributeType"] for entry in table["AttributeDefinitions"]}
    return sorted((key["KeyType"], key["AttributeName"], types[key["AttributeName"]]) for key in of["KeySchema"])


def _shown(keys: list[tuple[str, str, str]]) -> str:
    return ", ".join(f"{name} ({kind})" for _, name, kind in keys)
