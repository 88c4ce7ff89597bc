"""Backfills: passes over all stored items of an entity, paced and resumable, after its declaration has changed.

    backfill            writes                                              command
    `Migration`         items of earlier versions in the present form       `dynashard migrate`
    `IndexBuild`        missing and stale index keys                        `dynashard index build`

The workers of resizes do the work (`dynashard.resharding.worker`), and progress is stored as theirs is, so a killed
pass goes on where it was. Items may move between shards during a pass, and one that moves to a place that was read
before would be missed. So a pass ends only if the record of the family is still the one with which it began; otherwise
another round follows. The same conditional write records that it is complete.
"""

from dynashard.backfills.backfill import Backfill, Options, Report
from dynashard.backfills.index_keys import IndexBuild, wrong_index_keys
from dynashard.backfills.migration import Migration
from dynashard.backfills.movements import Movements, version_of
from dynashard.backfills.work import Unfit

__all__ = [
    "Backfill",
    "IndexBuild",
    "Migration",
    "Movements",
    "Options",
    "Report",
    "Unfit",
    "version_of",
    "wrong_index_keys",
]
