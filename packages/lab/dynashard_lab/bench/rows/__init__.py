"""The rows of the benchmark: a small module for each subject, with a function `rows(world)`."""
