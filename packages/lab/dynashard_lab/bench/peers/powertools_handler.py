"""The API's routes of users on Powertools with validation and boto3's Table, as their documentation recommends.

There is no tenant rule, revision, shard or problem document here: the peer does less.
"""

import os
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import uuid4

import boto3
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.metrics import MetricUnit
from boto3.dynamodb.conditions import Key
from pydantic import BaseModel, Field

SERVER_ERROR = 500

logger = Logger(service="peer")
metrics = Metrics(namespace="Peer", service="peer")
app = APIGatewayHttpResolver(enable_validation=True)
table = boto3.resource("dynamodb").Table(os.environ["TABLE_NAME"])


class User(BaseModel):
    """A user, with the fields of the API's."""

    tenant_id: str
    id: str
    email: str = Field(pattern=r"^[^@]+@[^@]+$", max_length=254)
    display_name: str = Field(max_length=256)
    manager_id: str | None = None
    department: str | None = None
    status: str = "active"
    created_at: str
    updated_at: str
    expires_at: int | None = None


class NewUser(BaseModel):
    """What a caller sends to create a user."""

    email: str = Field(pattern=r"^[^@]+@[^@]+$", max_length=254)
    display_name: str = Field(max_length=256)


class Page(BaseModel):
    """A page of users."""

    items: list[User]
    cursor: str | None = None


def tenant() -> str:
    """Return the caller's tenant."""
    claims: dict[str, Any] = app.current_event["requestContext"]["authorizer"]["jwt"]["claims"]
    return str(claims["tenant_id"])


def partition() -> str:
    """Return the partition key of the caller's tenant."""
    return f"peer.User:{tenant()}"


@app.get("/v1/users/<user_id>")
def get_user(user_id: str) -> User:
    """Read a user."""
    found = table.get_item(Key={"PK": partition(), "SK": user_id}).get("Item")
    if found is None:
        raise NotFoundError
    return User.model_validate(found)


@app.get("/v1/users")
def list_users(limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Page:
    """List users."""
    found = table.query(KeyConditionExpression=Key("PK").eq(partition()), Limit=limit)
    last = found.get("LastEvaluatedKey")
    items = [User.model_validate(item) for item in found["Items"]]
    return Page(items=items, cursor=None if last is None else last["SK"])


@app.post("/v1/users")
def create_user(user: NewUser) -> tuple[User, int]:
    """Store a user with a new id."""
    now = datetime.now(UTC).isoformat()
    made = User(tenant_id=tenant(), id=uuid4().hex, created_at=now, updated_at=now, **user.model_dump())
    item = {"PK": partition(), "SK": made.id, **made.model_dump(exclude_none=True)}
    table.put_item(Item=item, ConditionExpression="attribute_not_exists(PK)")
    return made, HTTPStatus.CREATED


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one API Gateway event."""
    answer = app.resolve(event, context)
    metrics.add_metric(name="Requests", unit=MetricUnit.Count, value=1)
    metrics.add_metric(name="ServerErrors", unit=MetricUnit.Count, value=int(answer["statusCode"] >= SERVER_ERROR))
    logger.info("request", extra={"route": event["rawPath"], "status": answer["statusCode"]})
    return answer
