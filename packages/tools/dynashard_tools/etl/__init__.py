"""`dynashard etl`: read a logical partition in parallel, map its items, write back those that changed."""
