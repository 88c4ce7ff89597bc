"""Checks that both halves of an edge are stored, and that counters of edges are right."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from dynashard.entity import EntityDefinition
from dynashard.service import Dynashard
from dynashard.transport.interface import Wire
from dynashard_patterns.edges import EdgeRepair, Edges
from dynashard_tools.verify.findings import Finding, Kind
from dynashard_tools.verify.parts import Check, Part

_NAMED: Final = 5
"""Missing halves of a node that a finding names."""


@dataclass
class EdgesCheck(Check):
    """Compares the edges of each node that has edges or counters among the items that were read.

    Cost: as `EdgeRepair.check` for each node.
    """

    part: ClassVar[Part] = Part.EDGES
    reads_items: ClassVar[bool] = True
    repairs: ClassVar[str] = "write missing halves of edges, and correct their counters"

    db: Dynashard
    declared: Edges[Any]
    mend: bool = False
    _nodes: set[tuple[str, str]] = field(default_factory=set)

    def note(self, entity: EntityDefinition[Any], item: Wire) -> None:
        """Record the node of a stored item."""
        if entity.model in (self.declared.model, self.declared.counts):
            fields = entity.decode_fields(item, ["tenant_id", "node"])
            self._nodes.add((fields["tenant_id"], fields["node"]))

    def finish(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Find missing halves and wrong counters of the recorded nodes."""
        repair = EdgeRepair.on(self.db, self.declared)
        for number, (tenant, node) in enumerate(sorted(self._nodes), 1):
            drift = repair.check(tenant, node)
            if not drift.none:
                # Edges that come and go may look wrong for a moment.
                drift = (repair.repair if self.mend else repair.check)(tenant, node)
            if drift.halves:
                detail = f"the other half is missing of {', '.join(drift.halves[:_NAMED])}"
                yield Finding(Kind.EDGE, f"{tenant} {node}", detail, len(drift.halves), mended=drift.mended)
            for way, off in drift.counted.items():
                yield Finding(Kind.COUNT, f"{tenant} {node}", f"{way} is off by {off:+}", mended=drift.mended)
            advance(number)
