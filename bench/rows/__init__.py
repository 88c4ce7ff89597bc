"""The rows of the benchmark: one small module a subject, each with `rows(world)`."""
