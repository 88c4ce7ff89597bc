"""The operations that every client has, and the list of the clients."""

from asyncio import AbstractEventLoop
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Protocol

from dynashard_lab.bench.stored import SHARDS

Answer = Any
"""An item, a list of items, or how many were written or read. A client with a `loop` returns an awaitable of it."""

RAW: Final = "botocore, typed dictionaries"
"""The baseline of all comparisons: botocore's low-level client."""
DIRECT: Final = "Dynashard, direct transport"
SDK: Final = "Dynashard, botocore transport"
OURS: Final = (DIRECT, SDK)
FLOOR: Final = "floor: a prebuilt request"
PYDYNOX_MODELS: Final = "pydynox models"
PYDYNOX_DICTIONARIES: Final = "pydynox dictionaries"

CLIENTS: Final[Mapping[str, tuple[str, str]]] = {
    RAW: ("raw", "Botocore"),
    "boto3 Table": ("boto3_table", "Boto3Table"),
    "pynamodb models": ("pynamodb_models", "PynamodbModels"),
    PYDYNOX_MODELS: ("pydynox_models", "PydynoxModels"),
    "pydynox models, async": ("pydynox_models", "PydynoxModelsAsync"),
    PYDYNOX_DICTIONARIES: ("pydynox_dictionaries", "PydynoxDictionaries"),
    "pydynox dictionaries, async": ("pydynox_dictionaries", "PydynoxDictionariesAsync"),
    "aiodynamo dictionaries, async": ("aiodynamo_dictionaries", "Aiodynamo"),
    SDK: ("layer_sdk", "OnBotocore"),
    DIRECT: ("layer_direct", "Direct"),
    FLOOR: ("floor", "Floor"),
}
"""Each client's name, with its module in this package and its class. The first is the baseline."""


class Client(Protocol):
    """A client of a server at one URL.

    What an operation sends is made once and before it is measured, as far as the client lets its user do that. Each
    client returns what its documentation recommends: entities, models or dictionaries.
    """

    loop: AbstractEventLoop | None
    """Runs what the operations return; None if they return when they are done."""

    def get(self) -> Answer:
        """Return one item by its key."""
        ...

    def put(self) -> Answer:
        """Replace an item on a condition. Return the old item, or the new one if the client cannot return the old."""
        ...

    def update(self) -> Answer:
        """Set three attributes of an item on a condition, and return the new item if the client can."""
        ...

    def batch_write(self) -> Answer:
        """Put 25 items with one request, and return how many were put."""
        ...

    def batch_get(self) -> Answer:
        """Return a list of 100 items, read with one request."""
        ...

    def page(self) -> Answer:
        """Return a list of the first 100 items of a shard."""
        ...

    def three_fields(self) -> Answer:
        """Return three fields of the first 100 items of a shard, as mappings if the client has them."""
        ...

    def index(self) -> Answer:
        """Return a list of the first 100 items of a shard of an index."""
        ...

    def fan_out(self) -> Answer:
        """Read all shards at the same time, and return the number of items."""
        ...

    def scan(self) -> Answer:
        """Read all items of all shards, page after page, keep none of them, and return their number."""
        ...

    def close(self) -> None:
        """Close connections and end threads."""
        ...


class ReadsAttached(Protocol):
    """A client that also reads an item that has an attribute besides those of a user. Clients of models do without."""

    def attached(self) -> Answer:
        """Return an item with an attachment, which is not read."""
        ...


def load_class(name: str) -> Any:
    """Return the class of a client of the list.

    Raises:
        ModuleNotFoundError: the client is not installed.
    """
    module, kind = CLIENTS[name]
    return getattr(import_module(f"dynashard_lab.bench.clients.{module}"), kind)


def load(name: str, url: str, *, shards: int = SHARDS) -> Client:
    """Open a client of the list on a server that answers like `dynashard_lab.bench.canned` and has so many shards.

    Raises:
        ModuleNotFoundError: the client is not installed.
    """
    client: Client = load_class(name)(url, shards)
    return client
