"""`dynashard events`: follow the local bus, and publish again what could not be published."""
