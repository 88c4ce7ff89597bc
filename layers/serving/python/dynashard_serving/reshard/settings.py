"""The settings of the functions."""

from typing import Annotated

from dynashard.errors import ConfigurationError
from dynashard.resharding import Timing
from dynashard_serving.settings import TableSettings, Variable, number, whole_number


class Settings(TableSettings, frozen=True, kw_only=True):
    """Settings of the functions that change shard counts, read once.

    Attributes:
        topology_skew_seconds: how far two clocks may be apart.
        concurrency: tasks of one resize that are worked on at once.
        table_stream: ARN of the stream of the table of items, for the watch; empty if nobody looks at it.
        slice_seconds: how long a function works on a task before it hands over to the next.
    """

    topology_skew_seconds: Annotated[float, Variable("TOPOLOGY_SKEW_SECONDS", number)] = 1.0
    concurrency: Annotated[int, Variable("CONCURRENCY", whole_number)] = 8
    table_stream: Annotated[str, Variable("TABLE_STREAM_ARN")] = ""
    slice_seconds: Annotated[float, Variable("SLICE_SECONDS", number)] = 240.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.topology_skew_seconds < 0:
            raise ConfigurationError("TOPOLOGY_SKEW_SECONDS must not be below 0")
        if self.concurrency < 1 or self.slice_seconds <= 0:
            raise ConfigurationError("CONCURRENCY must be at least 1, and SLICE_SECONDS above 0")

    @property
    def timing(self) -> Timing:
        """The times that bound how long a process may act on an earlier phase."""
        return Timing(
            self.topology_lease_seconds,
            self.topology_operation_seconds,
            self.topology_skew_seconds,
            clocks=self.clocks,
        )
