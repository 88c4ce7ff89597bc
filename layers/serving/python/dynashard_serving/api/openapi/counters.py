"""Counters in the OpenAPI document."""

from typing import Any, Final

from pydantic import create_model

from dynashard.entity import definition
from dynashard_patterns.counters import bounds_of
from dynashard_serving.api.counters import VERBS, CounterPaths
from dynashard_serving.api.openapi.parts import (
    IDEMPOTENCY_KEY,
    Described,
    Operation,
    Schema,
    answer,
    body,
    operation,
    parameters_of,
    sentence,
)
from dynashard_serving.api.openapi.schemas import CONTROLS, refused_by_keys, text_without
from dynashard_serving.api.openapi.security import secured
from dynashard_serving.api.response import JSON
from dynashard_serving.declare import ServedCounter
from dynashard_serving.operations.counters import DONE, Change, ValueWanted, Verb, key_model

_EXAMPLE: Final = {"amount": 2}
_TEXTS: Final = {
    "add": "Adds to the counter. 409 if it would rise above its ceiling{ceiling}; then nothing is changed.",
    "take": "Takes from the counter. 409 if it would fall below its floor{floor}; then nothing is changed.",
}


def counters_described(served: ServedCounter) -> Described:
    """Return what the document says of counters."""
    paths, described = CounterPaths(served), _Counters(served)
    found: dict[str, Schema] = {}
    of_one = {"get": described.get, "delete": described.delete}
    if operations := {name: of_one[name]() for name in of_one if name in served.operations}:
        found[paths.one] = {"parameters": described.key(), **operations}
    for verb in VERBS:
        if verb in served.operations:
            found[paths.changing(verb)[0]] = {"parameters": described.key(changed=True), "post": described.change(verb)}
    return Described(found, described.schemas())


class _Counters:
    def __init__(self, served: ServedCounter) -> None:
        self._name = served.counter.__name__
        self._tag = served.tag or served.path
        self._served = served
        self._key = key_model(served.counter)
        self._is = sentence(served.counter).partition(".")[0]

    def key(self, *, changed: bool = False) -> list[Schema]:
        """The parameters of a counter's path; a counter that is `changed` must be one whose value a URL can ask for."""
        found = []
        for parameter in parameters_of(self._key):
            name, schema = parameter["name"], dict(parameter["schema"])
            text = parameter["description"] or f"The {name} of the counter."
            if schema.get("type") == "string" and not {"format", "pattern", "enum"} & schema.keys():
                refused = refused_by_keys(definition(self._served.counter), name) + (f"?{CONTROLS}" if changed else "")
                schema["pattern"] = text_without(refused)
            found.append({**parameter, "schema": schema, "in": "path", "required": True, "description": text})
        return found

    def schemas(self) -> dict[str, Schema]:
        """The schemas of a change, of its answer, and of a value."""
        fields: dict[str, Any] = {n: (f.annotation, f) for n, f in self._key.model_fields.items()}
        made: dict[str, Schema] = {}
        if "get" in self._served.operations:
            value = create_model(
                f"{self._name}Value", __doc__=f"{self._is}: how many there are.", **fields, value=(int, ...)
            )
            made[f"{self._name}Value"] = value.model_json_schema(mode="serialization")
        for verb in VERBS:
            if verb not in self._served.operations:
                continue
            done: dict[str, Any] = {DONE[verb]: (int, ...)}
            name = f"{self._name}{DONE[verb].capitalize()}"
            model = create_model(name, __doc__=f"{self._is}: what was {DONE[verb]}.", **fields, **done)
            made[name] = model.model_json_schema(mode="serialization")
            made[f"{self._name}Change"] = Change.model_json_schema()
        return made

    def get(self) -> Operation:
        """The reading of a value."""
        text = "Reads the counter at one moment. It is 0 if nothing was ever added or taken."
        found = operation(
            f"get{self._name}", "Read a counter", self._tag, text, {"200": answer("The value.", f"{self._name}Value")},
            more=("404", "409"),
        )  # fmt: skip
        return secured({**found, "parameters": parameters_of(ValueWanted)}, self._served.access, "get")

    def delete(self) -> Operation:
        """The removal of a counter."""
        answers = {"204": {"description": "The counter begins at 0 again."}}
        text = "Removes the counter, which begins at 0 again."
        found = operation(f"delete{self._name}", "Remove a counter", self._tag, text, answers, more=("404", "409"))
        return secured(found, self._served.access, "delete")

    def change(self, verb: Verb) -> Operation:
        """An addition or a taking."""
        bounds = bounds_of(self._served.counter)
        limits = {name: "" if bound is None else f", {bound}" for name, bound in bounds._asdict().items()}
        done = f"{self._name}{DONE[verb].capitalize()}"
        found = operation(
            f"{verb}{self._name}", f"{verb.capitalize()} {'to' if verb == 'add' else 'from'} a counter", self._tag,
            _TEXTS[verb].format(**limits), {"200": answer(f"What was {DONE[verb]}.", done)},
            more=("404", "409", "413", "415"),
        )  # fmt: skip
        described = {
            **found,
            "parameters": [IDEMPOTENCY_KEY],
            "requestBody": body(f"{self._name}Change", JSON, example=_EXAMPLE),
        }
        return secured(described, self._served.access, verb)
