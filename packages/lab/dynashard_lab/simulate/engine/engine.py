"""The requests that the engine executes, each as plans: one for every item of a batch or transaction."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from dynashard.transport.interface import Wire
from dynashard_lab.simulate.engine.plans import Plan
from dynashard_lab.simulate.engine.reads import plan_get, plan_query, plan_scan
from dynashard_lab.simulate.engine.refusal import RefusedError, invalid
from dynashard_lab.simulate.engine.tables import Database, Table
from dynashard_lab.simulate.engine.writes import CHECK, plan_batch_action, plan_write

MOST_ACTIONS: Final = 100
MOST_GETS: Final = 100
MOST_WRITES: Final = 25
_ACTIONS: Final = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", CHECK: CHECK}
_SINGLE: Final[Mapping[str, Callable[[Table, Mapping[str, Any]], Plan]]] = {
    "GetItem": plan_get,
    "Query": plan_query,
    "Scan": plan_scan,
}
_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


class Engine:
    """Executes requests in memory. Not safe to share between threads that run at the same time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tokens: dict[str, bytes] = {}

    def single(self, operation: str, request: Mapping[str, Any]) -> Plan:
        """Return the plan of a request for one item, or of a Query or Scan.

        Raises:
            RefusedError: the request is wrong, or unknown to this engine.
        """
        table = self._database[request["TableName"]]
        if operation in _WRITES:
            return plan_write(table, operation, request)
        if operation not in _SINGLE:
            raise RefusedError("UnknownOperationException", f"This engine does not know the operation {operation}")
        return _SINGLE[operation](table, request)

    def batch_write(self, request: Mapping[str, Any]) -> list[tuple[Wire, Plan]]:
        """Return each action of a BatchWriteItem with its plan; raises as `single`."""
        planned = [
            (action, plan_batch_action(self._database[table], action))
            for table, actions in _batch(request)
            for action in actions
        ]
        _check_distinct([plan for _, plan in planned], MOST_WRITES)
        return planned

    def batch_get(self, request: Mapping[str, Any]) -> list[tuple[Wire, Plan]]:
        """Return each key of a BatchGetItem with its plan; raises as `single`."""
        planned = []
        for table, wanted in _batch(request):
            reading = {name: value for name, value in wanted.items() if name != "Keys"}
            planned += [(key, plan_get(self._database[table], {**reading, "Key": key})) for key in wanted["Keys"]]
        _check_distinct([plan for _, plan in planned], MOST_GETS)
        return planned

    def transact_get(self, request: Mapping[str, Any]) -> list[Plan]:
        """Return the plan of each action of a TransactGetItems; raises as `single`."""
        gets = [action["Get"] for action in request["TransactItems"]]
        plans = [plan_get(self._database[get["TableName"]], get, consistent=True) for get in gets]
        _check_distinct(plans, MOST_ACTIONS)
        return plans

    def transact_write(self, request: Mapping[str, Any]) -> list[Plan]:
        """Return the plan of each action of a TransactWriteItems; none if its token was used for the same actions.

        Raises as `single`.
        """
        unknown = request.keys() - {"TransactItems", "ClientRequestToken", "ReturnConsumedCapacity"}
        if unknown:
            raise invalid(f"This engine does not know the parameters {', '.join(sorted(unknown))}")
        token = request.get("ClientRequestToken")
        if token in self._tokens:
            if self._tokens[token] == _fingerprint(request):
                return []
            raise RefusedError("IdempotentParameterMismatchException", "The token was used for other actions")
        plans = []
        for action in request["TransactItems"]:
            ((kind, write),) = action.items()
            plans.append(plan_write(self._database[write["TableName"]], _ACTIONS[kind], write))
        _check_distinct(plans, MOST_ACTIONS)
        return plans

    def executed(self, request: Mapping[str, Any]) -> None:
        """Note that a transaction was executed, so that it is not executed again under the same token."""
        if "ClientRequestToken" in request:
            self._tokens[request["ClientRequestToken"]] = _fingerprint(request)


def _batch(request: Mapping[str, Any]) -> list[tuple[str, Any]]:
    unknown = request.keys() - {"RequestItems", "ReturnConsumedCapacity"}
    if unknown:
        raise invalid(f"This engine does not know the parameters {', '.join(sorted(unknown))}")
    return list(request["RequestItems"].items())


def _check_distinct(plans: list[Plan], most: int) -> None:
    """Refuse too many actions, and two of them on one item."""
    if not 1 <= len(plans) <= most:
        raise invalid(f"{len(plans)} actions in a request; there must be 1 to {most}")
    keys = {(plan.table.name, plan.accesses[0].hash_key, plan.accesses[0].sort_key) for plan in plans}
    if len(keys) != len(plans):
        raise invalid("Provided list of item keys contains duplicates")


def _fingerprint(request: Mapping[str, Any]) -> bytes:
    return orjson.dumps(request["TransactItems"], option=orjson.OPT_SORT_KEYS)
