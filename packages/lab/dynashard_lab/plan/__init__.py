"""`dynashard plan`: capacity, shard counts and cost of an entity before it is deployed."""
