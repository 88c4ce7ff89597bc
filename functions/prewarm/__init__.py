"""The function `prewarm`."""
