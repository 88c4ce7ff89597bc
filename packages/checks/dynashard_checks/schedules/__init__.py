"""Deterministic simulation: random schedules of clients, movers, a controller and faults, and their checks."""
