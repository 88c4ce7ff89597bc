"""Checks that both halves of an edge are stored, and that counters of edges are right."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Final

from dynashard.entity import EntityDefinition, definition
from dynashard.service import Dynashard
from dynashard.transport.interface import Wire
from dynashard_patterns.edges import Drift, Edge, EdgeRepair, Edges
from dynashard_tools.verify.findings import Change, Finding, Kind, unreadable
from dynashard_tools.verify.parts import Check, Part

_NAMED: Final = 5
"""Missing halves of a node that a finding names."""
_SHOWN: Final = 100
"""Missing halves of a node that a finding has whole."""


@dataclass
class EdgesCheck(Check):
    """Compares the edges of each node that has edges or counters among the items that were read.

    Cost: as `EdgeRepair.check` for each node, and once more for the node of each half that is written.
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
        ends: set[tuple[str, str]] = set()
        for number, (tenant, node) in enumerate(sorted(self._nodes), 1):
            drift = self._drift(repair, tenant, node)
            ends.update((tenant, half.node) for half in drift.halves.values())
            yield from self._findings(tenant, drift)
            advance(number)
        # A half that is written is counted at its node, which may have counted it all the time.
        for tenant, node in sorted(ends) if self.mend else ():
            yield from self._findings(tenant, self._drift(repair, tenant, node))

    def _drift(self, repair: EdgeRepair[Any], tenant: str, node: str) -> Drift[Any]:
        drift = repair.check(tenant, node)
        if drift.none:
            return drift
        # Edges that come and go may look wrong for a moment.
        return (repair.repair if self.mend else repair.check)(tenant, node)

    def _findings(self, tenant: str, drift: Drift[Any]) -> Iterator[Finding]:
        where = f"{tenant} {drift.node}"
        if drift.halves:
            yield self._missing(where, drift.halves, mended=drift.mended)
        for way, count in drift.counted.items():
            changes = {way: Change({"N": str(count.counted)}, {"N": str(count.edges)})}
            yield Finding(Kind.COUNT, where, f"{way} is off by {count.off:+}", mended=drift.mended, changes=changes)
        yield from map(unreadable, drift.undecodable)

    def _missing(self, where: str, halves: Mapping[str, Edge], *, mended: bool) -> Finding:
        encode = definition(self.declared.model).encode
        shown = islice(halves.items(), _SHOWN)
        changes = {f"the other half of {edge}": Change(None, {"M": encode(half.__dict__)}) for edge, half in shown}
        detail = f"the other half is missing of {', '.join(islice(halves, _NAMED))}"
        return Finding(Kind.EDGE, where, detail, len(halves), mended=mended, changes=changes)
