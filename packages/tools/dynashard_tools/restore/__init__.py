"""Restores the tables of a deployed environment to a moment, step by step."""
