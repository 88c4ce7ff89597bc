"""The soak test: clients work over HTTP while the shard count of their logical partition changes."""
