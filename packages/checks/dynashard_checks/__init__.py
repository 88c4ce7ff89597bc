"""Checks of trust: random, long and hostile runs, and questions to an account."""
