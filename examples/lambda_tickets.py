"""A Lambda function of your own, with Powertools' resolver and logger, on tables of a stack of your own.

    handler   serves an HTTP API: `lambda_tickets.handler`
    reshard   carries resizes of shard counts out: `lambda_tickets.reshard`, every minute by a schedule

The construct `ShardedTable` makes the tables, and sets TABLE_NAME and TOPOLOGY_TABLE (docs/sharded-table.md).
"""

import os
import time
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response, content_types
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel

from dynashard import Dynashard, Entity, Key, Shards, connect, new_id
from dynashard.errors import DynashardError
from dynashard.growth.opening import GrowthOptions
from dynashard.resharding.driver import drive

LEFT_MS = 15_000
"""How much of a run is left when it begins nothing more: a slice of work takes up to 3 seconds, and a call some."""


class Ticket(Entity, name="ticket.v1.Ticket", key=Key("{team}", "{id}"), shards=Shards(start=4, max=256)):
    """A request for help."""

    team: str
    id: str = new_id()
    title: str


class Tickets(BaseModel):
    """A page of tickets."""

    items: list[Ticket]
    cursor: str | None


# Opened once in a process, as the function's role allows; the first request connects. A function sleeps between its
# calls, so it only requests resizes of shard counts, and `reshard` carries them out.
db = Dynashard(
    connect(),
    table=os.environ["TABLE_NAME"],
    topology_table=os.environ["TOPOLOGY_TABLE"],
    cursor_keys=[os.environ["CURSOR_KEY"]],
    growth=GrowthOptions(drives=False),
)
tickets = db.collection(Ticket)
logger = Logger(service="tickets")
app = APIGatewayHttpResolver(enable_validation=True)


@app.post("/tickets")
def create(ticket: Ticket) -> tuple[Ticket, int]:
    """Create a ticket."""
    return tickets.create(ticket), HTTPStatus.CREATED


@app.get("/teams/<team>/tickets")
def listing(team: str, cursor: str | None = None) -> Tickets:
    """List a team's tickets, 20 at a time."""
    page = tickets.list(team=team, limit=20, cursor=cursor)
    return Tickets(items=list(page), cursor=page.cursor)


@app.get("/teams/<team>/tickets/<id>")
def get(team: str, id: str) -> Ticket:  # noqa: A002 - the field's name
    """Read a ticket."""
    return tickets.get(team=team, id=id)


@app.exception_handler(DynashardError)
def refused(error: DynashardError) -> Response[str]:
    """Map the whole tree of errors in one place."""
    logger.info("refused", extra={"code": error.code, "reason": error.message})
    return Response(error.status, content_types.APPLICATION_JSON, f'{{"code": "{error.code}"}}')


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request of an HTTP API."""
    return app.resolve(event, context)


@logger.inject_lambda_context
def reshard(event: dict[str, Any], context: LambdaContext) -> None:
    """Carry out resizes of shard counts until none is under way, or until the time of this run is over."""
    del event
    drive(
        db.resharder(),
        stop=lambda: context.get_remaining_time_in_millis() < LEFT_MS,
        sleep=time.sleep,
        log=logger.warning,
        until_idle=True,
    )
