"""The function `writer`."""
