"""The Lambda functions: a folder each, with what only it needs. They never import each other."""
