"""Attachments: fields that are stored out of line. They are large, compressed, in pieces, and never read in part.

A declaration needs `Attachment` only. What reads and writes is in `repository`, what removes old pieces in `sweep`.
"""

from dynashard_patterns.attachments.declaration import Attachment

__all__ = ["Attachment"]
