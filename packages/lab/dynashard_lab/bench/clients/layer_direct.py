"""The layer on the direct transport."""

from dynashard.transport import connect
from dynashard_lab.bench.clients.layer import SETTINGS, Layer


class Direct(Layer):
    """Without botocore."""

    def __init__(self, url: str, shards: int) -> None:
        super().__init__(connect(url, **SETTINGS), shards)
