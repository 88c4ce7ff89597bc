"""The domain of a service whose shard count depends on the time of keys. Its folder comes before the shipped one."""
