"""The local stack: the whole backend on this machine, with the real handlers and the template's own tables."""
