"""The schemas of the document by name: each model has one name, and no two models have the same.

A model that is nested in fields has the name of its class, as pydantic gives it. Another class of the domain may have
that name too, or a schema of this package, such as `Count` or `UserPage`. Then the nested model is called `CountModel`.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from dynashard_serving.api.openapi.parts import REF, Described, Schema

DEFS: Final = "$defs"
LOCAL: Final = f"#/{DEFS}/"
"""What a reference begins with in a schema of pydantic, which brings the models that it refers to."""
_SUFFIX: Final = "Model"


class Components:
    """Collects the schemas of a document.

    Args:
        own: schemas whose names are fixed, by name.
        models: the schemas that `own` refers to by `LOCAL`, by the name there.
    """

    def __init__(self, own: Mapping[str, Schema], models: Mapping[str, Schema]) -> None:
        self._found: dict[str, Schema] = dict(own)
        self._names: dict[str, str] = {}
        for name, schema in own.items():
            self._found[name] = self._placed(schema, models)

    @property
    def schemas(self) -> dict[str, Schema]:
        """Every schema, by name."""
        # Generators of clients name a type by its title. Two components with one title lose every operation that uses
        # them.
        return {name: {**self._found[name], "title": name} for name in sorted(self._found)}

    def paths_of(self, described: Described) -> Mapping[str, Schema]:
        """Add the schemas of a declaration, and return its paths, which refer to them by the names they have now."""
        names = {name: self._added(name, *_apart(schema)) for name, schema in described.schemas.items()}
        renamed = {REF + name: REF + own for name, own in names.items() if name != own}

        def rename(to: str) -> str:
            return renamed.get(to, to)

        for own in names.values():
            self._found[own] = _with_references(self._found[own], rename)
        found: Mapping[str, Schema] = _with_references(described.paths, rename)
        return found

    def _added(self, name: str, schema: Schema, models: Mapping[str, Schema]) -> str:
        """Return the name that the schema of a model has among all others, and add it if it is new."""
        content = json.dumps([name, schema, _within(schema, models)], sort_keys=True)
        if content in self._names:
            return self._names[content]
        free = name
        while free in self._found:
            free += _SUFFIX
        # It may contain itself.
        self._names[content], self._found[free] = free, {}
        self._found[free] = self._placed(schema, models)
        return free

    def _placed(self, schema: Schema, models: Mapping[str, Schema]) -> Schema:
        """Return a schema that refers to components instead of the models that it came with."""

        def place(to: str) -> str:
            name = to.removeprefix(LOCAL)
            return REF + self._added(name, models[name], models) if to.startswith(LOCAL) else to

        found: Schema = _with_references(schema, place)
        return found


def _apart(schema: Schema) -> tuple[Schema, Mapping[str, Schema]]:
    """Return a schema without the models that it came with, and these. A model that contains itself is one of them."""
    models = schema.get(DEFS, {})
    if "$ref" in schema:
        return models[schema["$ref"].removeprefix(LOCAL)], models
    return {word: value for word, value in schema.items() if word != DEFS}, models


def _within(schema: Schema, models: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the models that a schema refers to, and those that they refer to."""
    found: dict[str, Schema] = {}
    left = [schema]

    def see(to: str) -> str:
        name = to.removeprefix(LOCAL)
        if to.startswith(LOCAL) and name not in found:
            found[name] = models[name]
            left.append(models[name])
        return to

    while left:
        _with_references(left.pop(), see)
    return found


def _with_references(part: Any, changed: Callable[[str], str]) -> Any:
    """Return a part of the document with each reference changed, those of discriminators included."""
    if isinstance(part, list):
        return [_with_references(each, changed) for each in part]
    if not isinstance(part, Mapping):
        return part
    found = {name: _with_references(value, changed) for name, value in part.items()}
    if isinstance(part.get("$ref"), str):
        found["$ref"] = changed(part["$ref"])
    if isinstance(part.get("discriminator"), Mapping) and "mapping" in part["discriminator"]:
        mapping = {value: changed(to) for value, to in part["discriminator"]["mapping"].items()}
        found["discriminator"] = {**part["discriminator"], "mapping": mapping}
    return found
