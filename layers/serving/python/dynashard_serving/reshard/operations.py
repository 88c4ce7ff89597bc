"""Direct invocation: an operation by its name, answered with its result or with what is wrong with the request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynashard.errors import DynashardError, InputError
from dynashard.resharding import Resharder, Scope
from dynashard_serving.domain import Domain
from dynashard_serving.reshard.backend import scope_of

_ASKED: Final = frozenset({"operation", "entity", "partition", "index", "to", "budget", "survey", "rewrite"})
_ONLY_START: Final = ("to", "budget", "survey", "rewrite")


@dataclass(frozen=True, slots=True)
class Operator:
    """Answers requests of operators and other services."""

    resharder: Resharder
    log_error: Callable[[Exception], None]
    domain: Domain | None = None

    def answer(self, event: Any) -> dict[str, Any]:
        """Do what a request asks for.

        Args:
            event: `{"operation": "reshard.start", "entity": ..., "partition": {...} or null, "index": name or null,
                "to": N, "budget": units}`; the other operations are `reshard.status`, `.abort`, `.pause`, `.resume`,
                and `topology.show`.

        Returns:
            `{"ok": true, "result": ...}` or `{"ok": false, "error": {"code", "message", "details"}}`.
        """
        try:
            return {"ok": True, "result": self._result(event)}
        except DynashardError as error:
            return _refused(error.code, str(error), error.details)
        except Exception as error:  # noqa: BLE001 -- the caller learns that it failed, the log why
            self.log_error(error)
            return _refused("internal_error", "The request failed on our side; the function's log says why.", {})

    def _result(self, event: Any) -> Any:
        if not isinstance(event, Mapping):
            raise InputError("a request is an object with an operation")
        operations = {
            "reshard.start": self._start,
            "reshard.status": self._status,
            "reshard.abort": lambda asked: self.resharder.abort(self._scope(asked)).as_dict(),
            "reshard.pause": lambda asked: self.resharder.pause(self._scope(asked)).as_dict(),
            "reshard.resume": lambda asked: self.resharder.resume(self._scope(asked)).as_dict(),
            "topology.show": self._show,
        }
        name = event.get("operation")
        if not isinstance(name, str) or name not in operations:
            known = ", ".join(operations)
            raise InputError(f"there is no operation {name!r}; there are {known}", field="operation")
        unknown = sorted(str(each) for each in event if each not in _ASKED)
        if unknown:
            raise InputError(f"a request has no {unknown[0]!r}; it has {', '.join(sorted(_ASKED))}", field=unknown[0])
        return operations[name](event)

    def _start(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if "partition" not in asked and asked.get("index") is None:
            # A forgotten field must not change every partition there is.
            raise InputError("name the partition's fields, or say null for all partitions", field="partition")
        to, budget, survey = asked.get("to"), asked.get("budget"), asked.get("survey", True)
        if not isinstance(to, int) or isinstance(to, bool):
            raise InputError(f"to is {to!r}: give the shard count that is wanted", field="to")
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | float) or budget <= 0):
            raise InputError(f"budget is {budget!r}: give write units a second, above 0", field="budget")
        if not isinstance(survey, bool):
            raise InputError(f"survey is {survey!r}: true or false", field="survey")
        if (rewrite := asked.get("rewrite")) is not None and not isinstance(rewrite, bool):
            raise InputError(f"rewrite is {rewrite!r}: true or false", field="rewrite")
        scope = self._scope(asked, *_ONLY_START)
        status = self.resharder.start(scope, to, budget=budget, survey=survey, rewrite=rewrite)
        return status.as_dict()

    def _status(self, asked: Mapping[str, Any]) -> Any:
        """Of one record, or of all that have work left."""
        if "entity" not in asked:
            _nothing_but(asked)
            return [status.as_dict() for status in self.resharder.busy()]
        return self.resharder.status(self._scope(asked)).as_dict()

    def _show(self, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What holds for an entity: all its partitions, one that was named, its indexes, and all that is changing."""
        scope = self._scope(asked)
        scopes = [Scope(scope.entity), *([] if scope.whole_family else [scope])]
        if scope.whole_family:
            scopes += [Scope(scope.entity, index=each) for each in scope.entity.indexes.values() if each.shards]
        statuses = {status.key: status for status in (self.resharder.status(each) for each in scopes)}
        if scope.whole_family:
            statuses |= {s.key: s for s in self.resharder.busy() if s.entity == scope.entity.name}
        return [status.as_dict() for status in statuses.values()]

    def _scope(self, asked: Mapping[str, Any], *allowed: str) -> Scope:
        _nothing_but(asked, "entity", "partition", "index", *allowed)
        entity, partition, index = asked.get("entity"), asked.get("partition"), asked.get("index")
        if not isinstance(entity, str):
            raise InputError(f"entity is {entity!r}: name an entity", field="entity")
        if partition is not None and not isinstance(partition, Mapping):
            raise InputError('a partition is given by its fields, such as {"tenant_id": "abc"}', field="partition")
        if index is not None and not isinstance(index, str):
            raise InputError(f"index is {index!r}: name an index", field="index")
        return scope_of(entity, partition, index, self.domain)


def _nothing_but(asked: Mapping[str, Any], *allowed: str) -> None:
    for name in asked:
        if name not in ("operation", *allowed):
            raise InputError(f"{asked['operation']} takes no {name}", field=name)


def _refused(code: str, message: str, details: Mapping[str, Any]) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "message": message, "details": dict(details)}}
