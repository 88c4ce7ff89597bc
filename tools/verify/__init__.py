"""`dynashard verify`."""
