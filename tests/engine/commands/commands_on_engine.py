"""The function for direct invocation on the real engine."""

import json
from dataclasses import dataclass
from typing import Any

from dynashard.transport import Transport
from dynashard_serving.commands.answers import Commands
from dynashard_serving.commands.handler import build_commands
from dynashard_serving.declare import Exposed
from dynashard_serving.domain import domain_of
from dynashard_serving.limits import MAX_QUERIES
from dynashard_serving.settings import ServingSettings
from tests.engine.api.api_on_engine import KEYS, TOPOLOGY
from tests.roles import as_function

TENANT = "abc"


@dataclass(frozen=True)
class Service:
    """A service that invokes the function, through JSON as on Lambda."""

    commands: Commands
    tenant: str = TENANT
    entity: str = "user.v1.User"

    def ask(self, operation: str, **members: Any) -> dict[str, Any]:
        event = {"operation": operation, "entity": self.entity, "tenant_id": self.tenant, **members}
        answer: dict[str, Any] = json.loads(json.dumps(self.commands.answer(json.loads(json.dumps(event)))))
        return answer

    def result(self, operation: str, **members: Any) -> Any:
        """Send a request that succeeds, and return its result."""
        answer = self.ask(operation, **members)
        assert answer["ok"] is True, answer
        assert answer.keys() == {"ok", "result"}
        return answer["result"]

    def error(self, operation: str, **members: Any) -> dict[str, Any]:
        """Send a request that fails, and return its error."""
        answer = self.ask(operation, **members)
        assert answer["ok"] is False, answer
        assert answer.keys() == {"ok", "error"}
        error: dict[str, Any] = answer["error"]
        return error

    def fields(self, operation: str, **members: Any) -> dict[str, str]:
        """Send a request that fails, and return the codes of the fields at fault."""
        return {error["field"]: error["code"] for error in self.error(operation, **members)["errors"]}


def commands_on(
    transport: Transport,
    table: str,
    idempotency: str = "unused",
    *,
    exposed: tuple[Exposed, ...] = (),
    max_queries: int = MAX_QUERIES,
    caller_required: bool = False,
    **more: Any,
) -> Commands:
    """Return the function's request handler for this table, with the rights of its role."""
    allowed = as_function("commands", transport, table, TOPOLOGY, idempotency)
    settings = ServingSettings(
        table=table,
        topology_table=TOPOLOGY,
        idempotency_table=idempotency,
        environment="local",
        cursor_keys=KEYS,
        max_queries=max_queries,
        caller_required=caller_required,
    )
    return build_commands(settings, allowed, domain=domain_of(*exposed) if exposed else None, **more)
