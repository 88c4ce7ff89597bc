"""Orders over HTTP with FastAPI: the entity is the body, the answer and the schema.

    pip install dynashard fastapi uvicorn
    uvicorn fastapi_orders:app

It works where the SDK's own variables lead, as own_tables.py does.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from dynashard import Collection, Dynashard, Entity, Index, Key, Shards, connect, new_id
from dynashard.errors import DynashardError

OURS = 500
"""The least status of an error that is not the caller's, whose message is for the log."""


class Order(
    Entity,
    name="order.v1.Order",
    key=Key(partition="{shop}", sort="{id}"),
    shards=Shards(start=4, max=256),
    indexes=[Index("GSI1", "by_state", partition="{shop}:{state}", sort="{id}")],
):
    """What a customer of a shop has ordered."""

    shop: str
    id: str = new_id()
    item: str = Field(min_length=1, max_length=200)
    amount: int = Field(default=1, ge=1)
    state: Literal["open", "sent"] = "open"


class OrderChange(BaseModel):
    """What may change."""

    amount: int = Field(default=1, ge=1)
    state: Literal["open", "sent"] = "open"


class Orders(BaseModel):
    """A page. It may be short; only a missing cursor ends the listing."""

    items: list[Order]
    cursor: str | None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the tables for as long as the process serves."""
    with Dynashard(
        connect(), table="orders", topology_table="orders-topology", cursor_keys=["a secret of 16 bytes or more"]
    ) as db:
        db.create_tables()
        app.state.orders = db.collection(Order)
        yield


def orders_of(request: Request) -> Collection[Order]:
    """Return the collection that all requests share."""
    orders: Collection[Order] = request.app.state.orders
    return orders


app = FastAPI(title="Orders", lifespan=lifespan)
Stored = Annotated[Collection[Order], Depends(orders_of)]
IfMatch = Annotated[str | None, Header(description="The ETag of the order to change.")]


# Calls of the layer are synchronous. FastAPI runs functions without `async` in threads, which may share a collection.


@app.post("/orders", status_code=201)
def create(orders: Stored, order: Order, response: Response) -> Order:
    """Create an order. The id may be left out."""
    return tagged(orders.create(order), response)


@app.get("/shops/{shop}/orders")
def listing(
    orders: Stored,
    shop: str,
    state: Literal["open", "sent"] | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: str | None = None,
) -> Orders:
    """List a shop's orders, the newest first. Send the cursor of a page to get the next one."""
    selected = {"shop": shop} if state is None else {"shop": shop, "state": state}
    page = orders.list(selected, order="ordered", reverse=True, limit=limit, cursor=cursor)
    return Orders(items=list(page), cursor=page.cursor)


@app.get("/shops/{shop}/orders/{id}")
def get(orders: Stored, shop: str, id: str, response: Response) -> Order:  # noqa: A002 - the field's name
    """Read an order."""
    return tagged(orders.get(shop=shop, id=id), response)


@app.patch("/shops/{shop}/orders/{id}")
def change(
    orders: Stored,
    shop: str,
    id: str,  # noqa: A002 - the field's name
    changes: OrderChange,
    *,
    response: Response,
    if_match: IfMatch = None,
) -> Order:
    """Change some fields; with If-Match only if nobody else has changed the order since."""
    revision = None if if_match is None else if_match.strip('"')
    changed = changes.model_dump(exclude_unset=True)
    return tagged(orders.update({"shop": shop, "id": id}, set=changed, if_match=revision), response)


@app.delete("/shops/{shop}/orders/{id}", status_code=204)
def delete(orders: Stored, shop: str, id: str) -> None:  # noqa: A002 - the field's name
    """Delete an order."""
    orders.delete(shop=shop, id=id)


def tagged(order: Order, response: Response) -> Order:
    """Set the ETag of an answer to the order's revision."""
    response.headers["ETag"] = f'"{order.revision}"'
    return order


@app.exception_handler(DynashardError)
def refused(_: Request, error: DynashardError) -> JSONResponse:
    """Map the whole tree of errors in one place: each has a status, a code, and a message for callers."""
    ours = error.status >= OURS and not error.retryable
    problem = {"status": error.status, "code": error.code, "detail": "Internal error." if ours else error.message}
    headers = {"Retry-After": "1"} if error.retryable else {}
    return JSONResponse(problem, error.status, headers, "application/problem+json")
