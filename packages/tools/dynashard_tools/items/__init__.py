"""`dynashard get`, `list`, `put` and `delete`: the items of any entity, from a shell."""
