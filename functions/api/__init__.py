"""The function `api`."""
