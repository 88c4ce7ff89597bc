"""The event bus of the local stack."""
