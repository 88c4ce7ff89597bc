"""Side by side with peers: `make bench`."""
