"""The way of functions to their queues."""

from typing import Any


def sqs_client() -> Any:
    """Botocore's client of SQS. Cost: imports the SDK's description of SQS, once; no request."""
    from botocore.config import Config  # noqa: PLC0415 - only who sends pays for it
    from botocore.session import get_session  # noqa: PLC0415

    config = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    return get_session().create_client("sqs", config=config)
