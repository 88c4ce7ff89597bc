"""The layer on botocore's transport."""

from dynashard.transport import connect
from dynashard_lab.bench.clients.layer import SETTINGS, Layer


class OnBotocore(Layer):
    """With botocore's sender, and the layer's own parser."""

    def __init__(self, url: str, shards: int) -> None:
        super().__init__(connect(url, transport="botocore", **SETTINGS), shards)
