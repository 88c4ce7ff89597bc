"""The layer on the direct transport."""

from bench.clients.layer import SETTINGS, Layer
from dynashard.transport import connect


class Direct(Layer):
    """Without botocore."""

    def __init__(self, url: str, shards: int) -> None:
        super().__init__(connect(url, **SETTINGS), shards)
