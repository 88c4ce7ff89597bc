"""A function that follows its event, for tests of execution environments."""

import os
import time
from pathlib import Path
from typing import Any

from dynashard_local.functions.local_function import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    match event.get("do"):
        case "raise":
            raise RuntimeError("as requested")
        case "end":
            os._exit(3)
        case "hang":
            while True:
                time.sleep(60)
        case "grow":
            return "x" * event["bytes"]
        case "meet":
            Path(event["mine"]).touch()
            while not Path(event["other"]).exists():
                time.sleep(0.005)
    print("printed", event.get("do"))  # noqa: T201 - what Lambda takes for the log
    return {
        "event": event,
        "process": os.getpid(),
        "environment": dict(os.environ),
        "name": context.function_name,
        "request_id": context.aws_request_id,
        "arn": context.invoked_function_arn,
        "remaining_ms": context.get_remaining_time_in_millis(),
    }
