"""`dynashard logs`: saved queries over the logs of a deployed environment."""
