"""Runs of the real sharding layer in virtual time: its clients, its growth policy, its controller and its mover."""
