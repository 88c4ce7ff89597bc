"""Verification: find stored data that does not agree, and repair it.

It reads the table as it is stored, and compares each item with its home, its index entries and the data derived from
it: copies, edges and their counts, roll-ups, attachments.
"""

from dynashard_tools.verify.findings import Finding, Kind, Report
from dynashard_tools.verify.verifier import Declared, Verifier

__all__ = [
    "Declared",
    "Finding",
    "Kind",
    "Report",
    "Verifier",
]
