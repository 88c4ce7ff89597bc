"""`dynashard simulate`: a model of DynamoDB's partitions in virtual time, and scenarios that run on it."""
