"""Verification: find stored data that does not agree, and repair it.

`Verifier` runs the checks of a `Task`. Those of items see each stored item once, as it is read; the others compare what
is derived from the items by the repair of its own package.

    command             the options of `dynashard verify`, and what it prints
    task                what is verified; which checks that needs
    verifier            reads the items, and runs the checks
    parts               `Part`, and `Check`: the interface of all checks
    homes, index_keys   items are where readers look for them, in the table and in its indexes
    copies, edges, roll_ups, attachments, unique
                        what is derived from items, or stored beside them
    judging             which rows may be compared at all; all others are counted or named, and never touched
    topology_records    shard counts in force
    stored              reading at a bounded rate
    findings            what is reported
"""

from dynashard_tools.verify.findings import Finding, Kind, Report
from dynashard_tools.verify.parts import Check, Part
from dynashard_tools.verify.roll_ups import Period
from dynashard_tools.verify.stored import ReadPace
from dynashard_tools.verify.task import Declared, Task
from dynashard_tools.verify.verifier import Verifier

__all__ = [
    "Check",
    "Declared",
    "Finding",
    "Kind",
    "Part",
    "Period",
    "ReadPace",
    "Report",
    "Task",
    "Verifier",
]
