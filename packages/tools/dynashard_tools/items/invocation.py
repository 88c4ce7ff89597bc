"""Invokes a backend in this process, with the checks, bounds and errors of direct invocation."""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynashard import definition
from dynashard.cures import hint
from dynashard.entity import Undecodable
from dynashard.locations import CURSOR_SECRET_OUTPUT
from dynashard.reads.filters import is_operators
from dynashard.reads.operators import RANGE_WORDS
from dynashard_local.functions.specs import api_environment
from dynashard_local.settings import Settings
from dynashard_serving.api.listings import PLACES
from dynashard_serving.commands.handler import Log, build_commands
from dynashard_serving.commands.request import CALLER, SERVICE
from dynashard_serving.declare import Exposed
from dynashard_serving.documents import TENANT, Document
from dynashard_serving.operations.choosing import index_of
from dynashard_serving.operations.served import Served
from dynashard_serving.settings import ServingSettings, tenant_rule
from dynashard_serving.telemetry.powertools import open_logger
from dynashard_tools.connection import Backend, open_backend
from dynashard_tools.environments import environment_named
from dynashard_tools.failure import CommandError
from dynashard_tools.left_out import LeftOut

_SHOWN: Final = 5
"""Fields at fault that the message names."""


class _RaisingLog(Log):
    """Raises internal errors, because the command line may show what callers of the API may not see."""

    def failed(self, error: Exception) -> None:
        raise error


@dataclass(frozen=True, slots=True)
class InvokedItems:
    """The items of one entity of a backend; see `Items`."""

    environment: str | None
    exposed: Exposed

    def get(self, key: Mapping[str, Any], include: Sequence[str], *, consistent: bool) -> Document:
        """Return an item."""
        members = {"key": _without_tenant(key), "include": include, "consistent": consistent}
        found: Document = self._invoke("get", key, members)
        return found

    def put(self, item: Document, if_match: str | None) -> Document:
        """Create or replace an item; return it as stored."""
        found: Document = self._invoke("put", item, {"item": item, "if_match": if_match})["item"]
        return found

    def delete(self, key: Mapping[str, Any], if_match: str | None) -> None:
        """Delete an item."""
        self._invoke("delete", key, {"key": _without_tenant(key), "if_match": if_match})

    def page(self, fields: Mapping[str, Any], options: Mapping[str, Any], left_out: LeftOut) -> Document:
        """Return a page."""
        choosing = _by_role(self.exposed, options.get("index"), fields)
        found: Document = self._invoke("list", fields, {**options, **choosing}, left_out=left_out)
        return found

    def _invoke(
        self, operation: str, given: Mapping[str, Any], members: Mapping[str, Any], left_out: LeftOut | None = None
    ) -> Any:
        request = {"operation": operation, "entity": definition(self.exposed.entity).name, TENANT: given.get(TENANT)}
        # Unset members are left out, because some entities, such as edges, accept fewer. An item may be empty.
        set_members = {
            n: v for n, v in members.items() if n == "item" or (v is not None and v is not False and v != [])
        }
        return invoke(self.environment, {**request, **set_members}, cursors=operation == "list", left_out=left_out)


def invoke(
    environment: str | None, request: Mapping[str, Any], *, cursors: bool = False, left_out: LeftOut | None = None
) -> Any:
    """Return the result of a request in the form of docs/invoking.md; `cursors` if it needs the keys that sign them.

    `left_out` names the stored items that the answer leaves out.

    Raises:
        CommandError: the request is refused; the message names the fields at fault, and ends with the code.
        DynashardError: it failed on the side of the backend.

    Cost: what `open_backend` costs and what the operation costs; deployed, a DescribeStacks and a GetSecretValue more
    with cursors.
    """
    backend = open_backend(environment)
    settings = _settings(backend, environment, cursors=cursors)
    log = _RaisingLog(open_logger("dynashard-command-line", sys.stderr), settings)
    answer = build_commands(settings, backend.transport, log=log).answer({**request, CALLER: SERVICE})
    if not answer["ok"]:
        # Of a listing, the command line gives fields by name alone, as REST does.
        raise CommandError(_line(answer["error"], PLACES if request["operation"] == "list" else ()))
    if left_out is not None:
        keys = answer.get("undecodable", {}).get("keys", ())
        left_out.add(Undecodable(**key) for key in keys)
    return answer["result"]


def _settings(backend: Backend, environment: str | None, *, cursors: bool) -> ServingSettings:
    if environment is None:
        return ServingSettings.from_env(api_environment(Settings.from_env(os.environ)))
    # Single-item calls never sign cursors, so a throwaway key avoids reading the secret.
    keys: dict[str, Any] = {"cursor_keys": (secrets.token_urlsafe(),)}
    if cursors:
        keys = {"cursor_secret_arn": environment_named(environment).output("Api", CURSOR_SECRET_OUTPUT)}
    return ServingSettings(
        table=backend.table,
        topology_table=backend.topology_table,
        idempotency_table="none: commands send no idempotency keys",
        topology_lease_seconds=backend.timing.lease,
        topology_clock_seconds=backend.timing.clocks.off,
        topology_ahead_seconds=backend.timing.clocks.ahead,
        # One throttled command does not show that a partition is hot.
        growth_mode="off",
        tenants=tenant_rule(os.environ),
        **keys,
    )


def _line(error: Mapping[str, Any], places: Sequence[str]) -> str:
    errors = error.get("errors", [])
    named = [f"{_name(each['field'], places)}: {each['message']}" for each in errors[:_SHOWN]]
    more = len(errors) - len(named) + error.get("errors_omitted", 0)
    # Some messages end as sentences do; pydantic's do not.
    text = " ".join(f"{each.removesuffix('.')}." for each in named) if named else error["message"]
    return f"{text}{f' And {more} more.' if more else ''} ({error['code']})"


def _name(field: str, places: Sequence[str]) -> str:
    place, _, name = field.partition(".")
    return name if place in places and name else field or "the item"


def _without_tenant(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != TENANT}


def _by_role(exposed: Exposed, asked: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Divide the fields of a listing as REST does: into those of the partition, of the sort key, and filters.

    They select the index, unless one is asked for.
    """
    fields = _without_tenant(given)
    if not exposed.operations:
        return fields
    served = Served(exposed)
    operators = {name: value for name, value in fields.items() if is_operators(value)}
    ranged = [name for name, words in operators.items() if RANGE_WORDS & words.keys() or name not in exposed.filters]
    plain = [name for name, value in fields.items() if name not in operators or "eq" in value]
    # The backend refuses an index that does not exist.
    index = asked if asked is not None and asked not in served.indexes else index_of(served, asked, plain, ranged)
    by = served.indexes.get(index or "", served.definition)
    known = dict.fromkeys(name for name in (*by.partition.fields, *by.sort.fields, *exposed.filters) if name != TENANT)
    parts: dict[str, dict[str, Any]] = {"partition": {}, "sort": {}, "filters": {}}
    for name, value in fields.items():
        if name not in known:
            meant = hint(name, known) or "."
            raise CommandError(f"{name} does not choose items of this listing{meant} It takes {', '.join(known)}")
        filtering = name in exposed.filters and (name in operators or name not in by.sort.fields)
        place = "partition" if name in by.partition.fields else "filters" if filtering else "sort"
        parts[place][name] = value
    return {**{name: values for name, values in parts.items() if values}, "index": index}
