"""The function `changes`."""
