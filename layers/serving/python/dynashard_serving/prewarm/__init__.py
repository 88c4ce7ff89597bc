"""Warms the table before its first traffic."""
