"""The AWS account that the local stack pretends to be."""

from typing import Final

ACCOUNT_ID: Final = "000000000000"
REGION: Final = "us-east-1"
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
"""The local engine accepts any credentials."""
