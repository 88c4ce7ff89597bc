"""The template's functions, as they run locally."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from secrets import token_urlsafe

from local.environments import FunctionSpec
from local.errors import LocalStackError
from local.events import REGION
from local.routes import route_table
from local.settings import Settings
from local.tables import CREDENTIALS
from local.template import Templates, synthesised

CURSOR_KEY_FILE = "cursor-key"


def function_specs(
    templates: Templates, names: Iterable[str], *, settings: Settings, endpoint: str, cursor_key: str
) -> list[FunctionSpec]:
    """How to run the functions of these names.

    Their environment variables are the template's. What points at a service that is not here is replaced: DynamoDB's
    endpoint, and the secret with the cursor keys.

    Args:
        templates: of the local environment.
        names: the functions' names.
        settings: of the local stack.
        endpoint: URL of the local engine.
        cursor_key: signs cursors.

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
        specs.append(
            FunctionSpec(
                name=resource.name,
                handler=f"{module}:{attribute}",
                environment=variables
                | local_variables(settings, endpoint=endpoint, cursor_key=cursor_key)
                | {
                    "AWS_LAMBDA_FUNCTION_NAME": resource.name,
                    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(properties.get("MemorySize", 128)),
                },
                timeout_seconds=int(properties.get("Timeout", 3)),
                memory_mb=int(properties.get("MemorySize", 128)),
            )
        )
    return specs


def function_named(templates: Templates, handler: str) -> str:
    """The name of the function with this handler, such as `functions.changes.handler.handler`.

    Raises:
        LocalStackError: the template has none.
    """
    for resource in templates.of_type("AWS::Lambda::Function"):
        if resource.properties["Handler"] == handler:
            return resource.name
    raise LocalStackError(f"The template has no function with the handler {handler}.")


def api_environment(settings: Settings) -> dict[str, str]:
    """The variables that the API runs with on the local stack: for tools that use its tables beside it.

    Table names, endpoint, credentials and cursor key are those of `make run` with the same settings. The stack must
    have been started once, or it is synthesised here.

    Raises:
        LocalStackError: the template cannot be synthesised, or `DYNAMODB_PORT` is 0 and says nothing.
    """
    endpoint = settings.dynamodb_endpoint or f"http://127.0.0.1:{settings.dynamodb_port}"
    if endpoint.endswith(":0"):
        raise LocalStackError("DYNAMODB_PORT=0 does not say where the engine is: set it as the stack's banner says.")
    templates = synthesised()
    names = {route.function for route in route_table(templates).routes}
    key = cursor_key(settings.data_dir)
    (spec, *_) = function_specs(templates, names, settings=settings, endpoint=endpoint.rstrip("/"), cursor_key=key)
    return dict(spec.environment)


def local_variables(settings: Settings, *, endpoint: str, cursor_key: str) -> dict[str, str]:
    """The environment variables that differ from a deployment: credentials, endpoint, cursor keys, times.

    The user's own environment is not passed on, so that no profile, proxy or region of theirs has a say.
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
        "GROWTH_MODE": settings.growth_mode,
        "GROWTH_COOLDOWN_SECONDS": str(settings.growth_cooldown_seconds),
        "GROWTH_QUIET_SECONDS": str(settings.growth_quiet_seconds),
        "MAX_QUERIES_PER_REQUEST": str(settings.max_queries_per_request),
        "NO_PROXY": "127.0.0.1,localhost",
        "PATH": os.environ.get("PATH", os.defpath),
        "TZ": "UTC",
    }


def cursor_key(data_dir: Path) -> str:
    """The key that signs local cursors; made at the first start, so that cursors outlive a restart."""
    path = data_dir / CURSOR_KEY_FILE
    if not path.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(token_urlsafe(32))
        draft.replace(path)
    return path.read_text().strip()
