"""Verification: whether everything that is stored agrees, and mending what does not.

Reads the table as it is stored, and compares each item with its home, its index entries and what is derived from it:
copies, edges and their counts, roll-ups, attachments.
"""

from dynashard.verification.findings import Finding, Kind, Report
from dynashard.verification.verifier import Declared, Verifier

__all__ = ["Declared", "Finding", "Kind", "Report", "Verifier"]
