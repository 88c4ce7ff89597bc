"""How the template's functions run locally."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from secrets import token_urlsafe
from typing import Final

from dynashard.reads.cursor import MIN_KEY_BYTES
from dynashard_local.account import CREDENTIALS, REGION
from dynashard_local.data_folder import kept_file
from dynashard_local.errors import LocalStackError
from dynashard_local.functions.local_function import FunctionSpec
from dynashard_local.routes import route_table
from dynashard_local.settings import Settings
from dynashard_local.template import Templates, committed

COMMANDS: Final = "functions.commands.handler.handler"
"""The handler of the function for direct invocation."""
WRITER: Final = "functions.writer.handler.handler"
"""The handler of the function that executes what is on the queues."""
CHANGES: Final = "functions.changes.handler.handler"
"""The handler of the function that consumes the table's stream."""
CURSOR_KEY_FILE: Final = "cursor-key"


def function_specs(
    templates: Templates, names: Iterable[str], *, settings: Settings, endpoint: str, cursor_key: str
) -> list[FunctionSpec]:
    """Return how to run the functions of these names.

    Their environment variables are the template's; DynamoDB's endpoint and the cursor keys are the local ones.

    Raises:
        LocalStackError: a function's handler is not in this checkout.
    """
    wanted = set(names)
    specs = []
    for resource in templates.of_type("AWS::Lambda::Function"):
        if resource.name not in wanted:
            continue
        properties = resource.properties
        module, _, attribute = str(properties["Handler"]).replace("/", ".").rpartition(".")
        if not module.startswith("functions."):
            raise LocalStackError(f"{resource.name} has handler {properties['Handler']}, which is not in functions/.")
        declared = templates.resolve(resource.stack, properties.get("Environment", {}).get("Variables", {}))
        variables = {name: str(value) for name, value in declared.items() if name != "CURSOR_SECRET_ARN"}
        memory, timeout = int(properties.get("MemorySize", 128)), int(properties.get("Timeout", 3))
        variables |= local_variables(settings, endpoint=endpoint, cursor_key=cursor_key)
        variables |= {"AWS_LAMBDA_FUNCTION_NAME": resource.name, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory)}
        specs.append(FunctionSpec(resource.name, f"{module}:{attribute}", variables, timeout, memory))
    return specs


def function_named(templates: Templates, handler: str) -> str:
    """Return the name of the function with a handler such as `functions.changes.handler.handler`.

    Raises:
        LocalStackError: the template has none.
    """
    for resource in templates.of_type("AWS::Lambda::Function"):
        if resource.properties["Handler"] == handler:
            return resource.name
    raise LocalStackError(f"The template has no function with the handler {handler}.")


def api_environment(settings: Settings) -> dict[str, str]:
    """Return the variables of the API's function on the local stack, for tools that use its tables.

    Raises:
        LocalStackError: the template cannot be synthesised, or `DYNAMODB_PORT` is 0.
    """
    endpoint = settings.dynamodb_endpoint or f"http://127.0.0.1:{settings.dynamodb_port}"
    if endpoint.endswith(":0"):
        raise LocalStackError("DYNAMODB_PORT=0 does not name the engine's port: set it as in the stack's banner.")
    templates = committed()
    names = {route.function for route in route_table(templates).routes}
    key = cursor_key(settings.data_dir)
    (spec, *_) = function_specs(templates, names, settings=settings, endpoint=endpoint.rstrip("/"), cursor_key=key)
    return dict(spec.environment)


def local_variables(settings: Settings, *, endpoint: str, cursor_key: str) -> dict[str, str]:
    """Return the environment variables that differ from a deployment.

    The user's own environment is not passed on, so their profile, proxy and region are ignored.
    """
    return {
        **CREDENTIALS,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "DYNAMODB_ENDPOINT": endpoint,
        "CURSOR_KEYS": json.dumps([cursor_key]),
        "TOPOLOGY_LEASE_SECONDS": str(settings.topology_lease_seconds),
        "TOPOLOGY_OPERATION_SECONDS": str(settings.topology_operation_seconds),
        "TOPOLOGY_SKEW_SECONDS": str(settings.topology_skew_seconds),
        "TOPOLOGY_CLOCK_SECONDS": str(settings.topology_clock_seconds),
        "TOPOLOGY_AHEAD_SECONDS": str(settings.topology_ahead_seconds),
        "GROWTH_MODE": settings.growth_mode,
        "GROWTH_COOLDOWN_SECONDS": str(settings.growth_cooldown_seconds),
        "GROWTH_QUIET_SECONDS": str(settings.growth_quiet_seconds),
        "GROWTH_MOST_MINUTES": f"{settings.growth_most_minutes:g}",
        "GROWTH_MOVER_SHARE": f"{settings.growth_mover_share:g}",
        "MAX_QUERIES_PER_REQUEST": str(settings.max_queries_per_request),
        "CALLER_REQUIRED": str(settings.caller_required).lower(),
        "NO_PROXY": "127.0.0.1,localhost",
        "PATH": os.environ.get("PATH", os.defpath),
        "TRANSPORT": settings.transport,
        "TZ": "UTC",
    }


def cursor_key(data_dir: Path) -> str:
    """Return the key that signs local cursors, made at the first start, so that cursors outlive a restart.

    Raises:
        LocalStackError: the file does not contain a key.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    path = data_dir / CURSOR_KEY_FILE
    key = kept_file(path, lambda: token_urlsafe(32).encode()).strip()
    if not key.isascii() or len(key) < MIN_KEY_BYTES:
        raise LocalStackError(
            f"{path} does not contain a key of {MIN_KEY_BYTES} bytes or more: remove it, and the next start makes a "
            "new one. Cursors from before are refused then."
        )
    return key.decode()
