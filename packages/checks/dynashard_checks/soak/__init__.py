"""Soak tests: clients work over HTTP while a shard count changes, or while an index is built."""
