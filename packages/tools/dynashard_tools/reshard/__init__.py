"""`dynashard reshard`: resizes, begun, watched and called off by hand."""
