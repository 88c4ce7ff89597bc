"""The layer on botocore's transport."""

from bench.clients.layer import SETTINGS, Layer
from dynashard.transport import connect


class OnBotocore(Layer):
    """With botocore's sender, and the layer's own parser."""

    def __init__(self, url: str, shards: int) -> None:
        super().__init__(connect(url, transport="botocore", **SETTINGS), shards)
