"""A typed client of a backend, over two ways with one behaviour: direct invocation and REST.

    from dynashard_client import Client

    client = Client.lambda_("Dynashard-dev-Commands-...", tenant="abc")
    client = Client.rest("https://api.example.com", token=token, entities=ENTITIES)

    users = client.collection(User)
    ada = users.create(User(tenant_id="abc", email="ada@example.com", display_name="Ada"))
    for user in users.items(order="ordered"):
        ...

Items are the entities' own classes, with their revisions. Errors are the layer's own classes. What can be repeated is
retried with jitter; a create carries a key, so that it is done once.
"""

from dynashard.repository import Written
from dynashard_client.answers import Outcome, Page, RefusedError
from dynashard_client.client import Client
from dynashard_client.items import Items
from dynashard_client.retries import Retries

__all__ = [
    "Client",
    "Items",
    "Outcome",
    "Page",
    "RefusedError",
    "Retries",
    "Written",
]
