"""The entities of this backend: one module for each, which also says how it is served."""
