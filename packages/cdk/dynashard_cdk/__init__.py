"""The infrastructure: one file a stack, their settings, and the build of what they deploy."""
