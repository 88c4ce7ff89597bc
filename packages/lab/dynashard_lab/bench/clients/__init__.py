"""The clients that are compared: a small module for each, with the same operations. See `interface`."""
