"""Check that every answer is true while requests to DynamoDB fail: see `dynashard_checks.truth.__main__`."""
