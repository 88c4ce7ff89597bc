"""The infrastructure of this backend: which stacks it has."""
