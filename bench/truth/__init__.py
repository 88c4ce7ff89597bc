"""Whether every answer is true while the way to DynamoDB fails: see `bench.truth.__main__`."""
