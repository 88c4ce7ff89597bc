"""Random schedules of two versions of an entity, of `dynashard migrate` and of `dynashard index build`.

    python -m dynashard_checks.changed_models --schedules 20000

Clients of both versions work on the same keys, while backfills run, are killed and go on, and while shard counts
change. Every request of a backfill may be preceded by operations of clients, throttled, or lose its answer. A seed
determines the whole schedule. See docs/proof.md.
"""
