"""Benchmarks, and long checks under load and faults: see `make help`."""
