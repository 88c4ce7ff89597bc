"""Events for others: changes of items, published to a bus of EventBridge."""

from dynashard_serving.events.declaration import Events

__all__ = ["Events"]
