"""`dynashard reshard`: changes of shard counts, begun, watched and called off by hand."""
