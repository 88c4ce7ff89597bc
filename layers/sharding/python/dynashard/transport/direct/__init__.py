"""A transport to DynamoDB on plain sockets, with signatures of its own: less CPU than botocore, the same outcomes."""
