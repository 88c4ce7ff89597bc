"""Check that every answer is true while requests to DynamoDB fail: see `bench.truth.__main__`."""
