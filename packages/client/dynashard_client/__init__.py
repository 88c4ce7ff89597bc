"""A typed client of a backend, over two ways with one behaviour: REST and direct invocation.

    from dynashard_client import Client, Item

    class User(Item, path="users"):
        id: str | None = None
        email: str
        display_name: str

    client = Client.rest("https://api.example.com", token=token)
    client = Client.lambda_("Dynashard-dev-Commands-...", tenant="abc")

    users = client.collection(User)
    ada = users.create(User(email="ada@example.com", display_name="Ada"))
    for user in users.items(order="ordered"):
        ...

`AsyncClient` has the same names with `await`. Items have their revisions. Errors are those of
`dynashard_client.errors`. What can be repeated is retried with jitter. A create carries a key, so that it is done once.
"""

from dynashard_client.answers import Counted, Outcome, Page, Written
from dynashard_client.awaiting import AsyncClient, AsyncItems
from dynashard_client.batches import Create, Delete, Get, Put, Update
from dynashard_client.client import Client
from dynashard_client.errors import (
    AlreadyExistsError,
    ConfigurationError,
    DynashardError,
    EngineUnavailableError,
    FieldError,
    InputError,
    InvalidCursorError,
    NotFoundError,
    OutcomeUnknownError,
    RefusedError,
    RevisionMismatchError,
    ThrottledError,
    ValidationFailedError,
)
from dynashard_client.items import Items
from dynashard_client.resource import Item, Resource
from dynashard_client.retries import Retries

__all__ = [
    "AlreadyExistsError",
    "AsyncClient",
    "AsyncItems",
    "Client",
    "ConfigurationError",
    "Counted",
    "Create",
    "Delete",
    "DynashardError",
    "EngineUnavailableError",
    "FieldError",
    "Get",
    "InputError",
    "InvalidCursorError",
    "Item",
    "Items",
    "NotFoundError",
    "Outcome",
    "OutcomeUnknownError",
    "Page",
    "Put",
    "RefusedError",
    "Resource",
    "Retries",
    "RevisionMismatchError",
    "ThrottledError",
    "Update",
    "ValidationFailedError",
    "Written",
]
