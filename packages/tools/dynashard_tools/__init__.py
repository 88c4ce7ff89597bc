"""The command line: `dynashard`."""
