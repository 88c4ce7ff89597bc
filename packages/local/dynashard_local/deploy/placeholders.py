"""Runs ministack with placeholders for what its CloudFormation refuses: they can be deployed, and nothing is created.

ministack 1.5.33 knows neither saved log queries nor alarms on expressions. It makes user pools, but does not know the
URL of one as an attribute, which the gateway's authorizer is given. It runs in its own virtual environment, so
this program imports nothing but ministack.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

QUERY = "AWS::Logs::QueryDefinition"
ALARM = "AWS::CloudWatch::Alarm"
POOL = "AWS::Cognito::UserPool"


def add(handlers: dict[str, dict[str, Any]]) -> None:
    """Add the placeholders to ministack's handlers, by resource type."""
    handlers[QUERY] = {"create": _created, "update": _updated, "delete": _deleted}
    known = handlers[ALARM]

    def create(logical_id: str, properties: dict[str, Any], stack: str) -> Any:
        return (_created if properties.get("Metrics") else known["create"])(logical_id, properties, stack)

    def update(physical_id: str, before: dict[str, Any], after: dict[str, Any], *more: Any, **named: Any) -> Any:
        if after.get("Metrics"):
            return _updated(physical_id)
        return known["update"](physical_id, before, after, *more, **named)

    handlers[ALARM] = {**known, "create": create, "update": update}
    pool = handlers[POOL]
    handlers[POOL] = {**pool, "create": _with_url(pool["create"]), "update": _with_url(pool["update"])}


def _with_url(handler: Callable[..., tuple[str, dict[str, str]]]) -> Callable[..., tuple[str, dict[str, str]]]:
    def handled(*arguments: Any, **named: Any) -> tuple[str, dict[str, str]]:
        physical_id, attributes = handler(*arguments, **named)
        return physical_id, {**attributes, "ProviderURL": f"https://{attributes['ProviderName']}"}

    return handled


def _created(logical_id: str, properties: dict[str, Any], stack: str) -> tuple[str, dict[str, str]]:
    return properties.get("AlarmName") or f"{stack}-{logical_id}", {}


def _updated(physical_id: str, *_: Any) -> tuple[str, dict[str, str]]:
    return physical_id, {}


def _deleted(*_: Any) -> None:
    """Nothing was created."""


if __name__ == "__main__":
    add(import_module("ministack.services.cloudformation.provisioners")._RESOURCE_HANDLERS)  # noqa: SLF001 - no other way
    import_module("ministack.app").main()
