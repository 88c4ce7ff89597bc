"""`dynashard new` makes a backend, and `dynashard upgrade` takes what a later release changes in its files."""
