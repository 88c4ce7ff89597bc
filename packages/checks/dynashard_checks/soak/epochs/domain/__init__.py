"""The domain of a service whose table was written without shards. Its folder comes before the shipped one."""
