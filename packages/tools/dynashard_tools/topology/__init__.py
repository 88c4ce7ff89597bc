"""`dynashard topology`: what the topology table says of shard counts, and how items lie over the shards."""
