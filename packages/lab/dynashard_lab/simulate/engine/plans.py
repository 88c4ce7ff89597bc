"""Plans: what a request would read or write, what that costs, and its answer, before anything is stored.

So the model of partitions can refuse a request between its plan and its execution.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard.transport.interface import Wire
from dynashard_lab.simulate.engine.expressions import check_placeholders
from dynashard_lab.simulate.engine.refusal import RefusedError, invalid
from dynashard_lab.simulate.engine.tables import Row, Table
from dynashard_lab.simulate.model import Access

METERING: Final = frozenset({"TableName", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"})
PLACEHOLDERS: Final = frozenset({"ExpressionAttributeNames", "ExpressionAttributeValues"})


@dataclass(slots=True)
class Plan:
    """One request, or one action of a batch or transaction, on one table.

    Attributes:
        accesses: what it consumes, also if it is refused.
        answer: what DynamoDB answers, without the consumed capacity.
        refused: its refusal, if it would be refused.
        old, new: the row that it replaces, and the one that it stores; only if it `writes`.
    """

    table: Table
    accesses: list[Access]
    answer: Wire = field(default_factory=dict)
    refused: RefusedError | None = None
    old: Row | None = None
    new: Row | None = None
    writes: bool = False

    @property
    def units(self) -> float:
        """All units that it consumes."""
        return sum(access.units for access in self.accesses)

    def commit(self) -> None:
        """Store what it writes."""
        if self.writes and self.refused is None:
            self.table.change(self.old, self.new)


def check_parameters(request: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuse parameters that this engine does not know, and unused or undefined placeholders."""
    if not known.issuperset(request):
        unknown = request.keys() - known
        raise invalid(f"This engine does not know the parameters {', '.join(sorted(unknown))}")
    check_placeholders(request)
