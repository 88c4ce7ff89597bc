"""`dynashard plot`: pictures of live data."""
