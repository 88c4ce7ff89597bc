"""The rooms of the checkout and their modules, for tests about imports."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
ROOT = Path(__file__).parents[3]
PLACES = {
    "dynashard": ROOT / "layers/sharding/python/dynashard",
    "dynashard_patterns": ROOT / "layers/patterns/python/dynashard_patterns",
    "dynashard_serving": ROOT / "layers/serving/python/dynashard_serving",
    "dynashard_client": ROOT / "packages/client/dynashard_client",
    "dynashard_cdk": ROOT / "packages/cdk/dynashard_cdk",
    "dynashard_local": ROOT / "packages/local/dynashard_local",
    "dynashard_tools": ROOT / "packages/tools/dynashard_tools",
    "dynashard_lab": ROOT / "packages/lab/dynashard_lab",
    "dynashard_checks": ROOT / "packages/checks/dynashard_checks",
    "domain": ROOT / "layers/domain/python/domain",
    "functions": ROOT / "functions",
    "stacks": ROOT / "stacks",
}
PACKAGES = {
    "dynashard": set(),
    "dynashard_patterns": {"dynashard"},
    "dynashard_serving": {"dynashard", "dynashard_patterns"},
    "dynashard_client": set(),
}
"""The packages of layers and clients, and the others that each may import."""
FUNCTIONS = {"api", "changes", "commands", "prewarm", "reshard", "writer"}
"""The rooms of `dynashard_serving` that are the code of one function each."""
FLOORS = {
    "errors": 0,
    "cures": 0,
    "waiting": 0,
    "schema": 0,
    "runtime": 1,
    "key_time": 1,
    "keys": 1,
    "placement": 1,
    "codec": 1,
    "model_schema": 2,
    "record": 2,
    "compiled": 3,
    "entity": 4,
    "transport": 5,
    "cursor_keys": 6,
    "key_clock": 6,
    "tables": 6,
    "topology": 6,
    "locations": 7,
    "routing": 7,
    "repository": 8,
    "arguments": 9,
    "reads": 10,
    "transactions": 11,
    "resharding": 11,
    "collection": 11,
    "backfills": 12,
    "growth": 12,
    "service": 13,
    "awaiting": 14,
    "testing": 15,
    "": 16,
}
"""The rooms of the layer with their floors. The last one is the package itself."""


@cache
def parsed(code: str) -> ast.Module:
    return ast.parse(code)


@cache
def nodes_by_kind(code: str) -> Mapping[type[ast.AST], Sequence[ast.AST]]:
    """Return all nodes of a syntax tree by their class. To walk through the trees of all modules takes a second."""
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(parsed(code)):
        found.setdefault(type(node), []).append(node)
    return found


@dataclass(frozen=True)
class Source:
    """A module: its dotted name, whether it is a package, and its code."""

    name: str
    package: bool
    code: str = field(repr=False)

    @property
    def tree(self) -> ast.Module:
        """Its syntax tree, which is made by the first test that needs it rather than at collection."""
        return parsed(self.code)

    @property
    def imports(self) -> list[str]:
        """Every module that it imports, anywhere in the file. `from a import b` counts as `a.b`."""
        found = []
        for plain in self.nodes(ast.Import):
            found += [alias.name for alias in plain.names]
        for node in self.nodes(ast.ImportFrom):
            origin = self.origin(node)
            found += [f"{origin}.{alias.name}" for alias in node.names]
        return found

    def nodes(self, kind: type[Node]) -> Sequence[Node]:
        """Return the nodes of exactly this class, anywhere in the file."""
        return [node for node in nodes_by_kind(self.code).get(kind, ()) if isinstance(node, kind)]

    def origin(self, node: ast.ImportFrom) -> str:
        """Return the absolute name of the module that an import names."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        home = parts[: len(parts) - node.level + self.package]
        return ".".join([*home, *([node.module] if node.module else [])])


@cache
def sources(place: str) -> Sequence[Source]:
    """Return the modules of a place."""
    found = []
    for path in sorted(PLACES[place].rglob("*.py")):
        parts = [place, *path.relative_to(PLACES[place]).with_suffix("").parts]
        package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if package else parts)
        found.append(Source(name, package, path.read_text("utf-8")))
    return found


def everything() -> list[Source]:
    """Return the modules of all places."""
    return [source for place in PLACES for source in sources(place)]


def room(module: str) -> str:
    """Return the room of the layer that a module, or a name in a module, belongs to."""
    second = module.split(".")[1] if "." in module else ""
    return second if second in FLOORS else ""
