"""Histories of single keys, and a checker of their linearizability."""
