"""Entities to learn from and to try things with. Delete this folder to begin with a domain of your own."""
