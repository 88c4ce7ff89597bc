"""The function `commands`."""
