"""The function `reshard`."""
