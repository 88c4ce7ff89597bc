"""The arrows between rooms, as the design draws them: who may import whom, and what an import may do."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import dynashard
import dynashard_patterns

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
PLACES = {
    "dynashard": ROOT / "layers/sharding/python/dynashard",
    "dynashard_patterns": ROOT / "layers/patterns/python/dynashard_patterns",
    "dynashard_serving": ROOT / "layers/serving/python/dynashard_serving",
    "dynashard_client": ROOT / "clients/python/dynashard_client",
    "domain": ROOT / "layers/domain/python/domain",
    "functions": ROOT / "functions",
    "stacks": ROOT / "stacks",
    "local": ROOT / "local",
    "tools": ROOT / "tools",
}
PACKAGES = {
    "dynashard": set(),
    "dynashard_patterns": {"dynashard"},
    "dynashard_serving": {"dynashard", "dynashard_patterns"},
    "dynashard_client": {"dynashard", "dynashard_serving"},
}
"""The installable packages, and which of the others each may import."""
FLOORS = {
    "errors": 0,
    "runtime": 0,
    "schema": 0,
    "keys": 1,
    "placement": 1,
    "codec": 1,
    "entity": 2,
    "transport": 3,
    "cursor_keys": 4,
    "topology": 4,
    "locations": 5,
    "routing": 5,
    "repository": 6,
    "reads": 7,
    "resharding": 8,
    "service": 9,
    "": 12,
}
"""The layer's rooms; the last is its front door."""
PURE = {0: set(sys.stdlib_module_names), 1: set(sys.stdlib_module_names) | {"xxhash", "orjson"}}
"""What else the two lowest floors may import."""
SDK = {"botocore", "boto3"}
SPEAKS_SDK = {"transport"}
"""Rooms that may import it: the wire to DynamoDB."""
STORAGE = {"keys", "placement", "codec", "topology", "routing"}
"""Rooms that decide how items are stored: none of a handler's business."""
EXPOSING = "dynashard_serving.operations.exposed."
"""Where the types of the domain's declarations for callers are."""
OUTSIDE = {"subprocess", "socket", "urllib", "http", "ssl", "time", "datetime", "random", "secrets", "uuid", *SDK}
"""What a hermetic synthesis has no use for."""
READS = {
    "environ", "getenv", "environb", "now", "utcnow", "today", "time", "time_ns", "monotonic", "perf_counter",
    "get_session", "Session", "client", "resource", "urandom", "token_bytes", "token_urlsafe", "token_hex", "uuid4",
}  # fmt: skip
"""Names that stand for the environment, the clock, randomness or AWS when they are used."""


@cache
def parsed(code: str) -> ast.Module:
    return ast.parse(code)


@dataclass(frozen=True)
class Source:
    """A module: its dotted name, whether it is a package, and its code."""

    name: str
    package: bool
    code: str = field(repr=False)

    @property
    def tree(self) -> ast.Module:
        """Its tree: made by the first test that asks for it, not by every process that collects the tests."""
        return parsed(self.code)

    @property
    def imports(self) -> list[str]:
        """Every module it imports, wherever in the file; `from a import b` counts as `a.b`."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                origin = self.origin(node)
                found += [f"{origin}.{alias.name}" for alias in node.names]
        return found

    def origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        home = parts[: len(parts) - node.level + self.package]
        return ".".join([*home, *([node.module] if node.module else [])])


def sources(place: str) -> Iterator[Source]:
    for path in sorted(PLACES[place].rglob("*.py")):
        parts = [place, *path.relative_to(PLACES[place]).with_suffix("").parts]
        package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if package else parts)
        yield Source(name, package, path.read_text("utf-8"))


def everything() -> list[Source]:
    return [source for place in PLACES for source in sources(place)]


def room(module: str) -> str:
    """Return the room of the layer that a module, or a name in a module, belongs to."""
    second = module.split(".")[1] if "." in module else ""
    return second if second in FLOORS else ""


def arrows_against_the_design(source: Source) -> list[str]:
    place = source.name.split(".")[0]
    allowed = {
        "dynashard": layer_allows,
        **dict.fromkeys(PACKAGES.keys() - {"dynashard"}, package_allows),
        "stacks": stacks_allow,
        "functions": functions_allow,
        "domain": domain_allows,
    }
    check = allowed.get(place)
    return [imported for imported in source.imports if check and not check(source.name, imported)]


def layer_allows(module: str, imported: str) -> bool:
    top, mine, floor = imported.split(".", maxsplit=1)[0], room(module), FLOORS[room(module)]
    if top in PLACES and top != "dynashard":
        return False
    if top != "dynashard":
        return (top not in SDK or mine in SPEAKS_SDK) and top in PURE.get(floor, {top})
    theirs = room(imported)
    return theirs == mine or FLOORS[theirs] < floor


def package_allows(module: str, imported: str) -> bool:
    mine, top = module.split(".", maxsplit=1)[0], imported.split(".", maxsplit=1)[0]
    if top in PLACES:
        return top == mine or top in PACKAGES[mine]
    # The client invokes functions, which is an AWS interface of its own.
    return top not in SDK or mine == "dynashard_client"


def stacks_allow(_module: str, imported: str) -> bool:
    top = imported.split(".", maxsplit=1)[0]
    if top == "dynashard":
        return room(imported) == "schema"
    if top == "dynashard_serving":
        return imported.startswith("dynashard_serving.tenants")
    return top not in {"domain", "dynashard_patterns", "dynashard_client", "functions", "local", "tools"}


def functions_allow(module: str, imported: str) -> bool:
    top = imported.split(".", maxsplit=1)[0]
    if top == "functions":
        mine, theirs = module.split("."), imported.split(".")
        return len(mine) > 1 and mine[1] == theirs[1]
    if top == "dynashard":
        return room(imported) not in STORAGE
    return top not in {"stacks", "local", "tools"}


def domain_allows(_module: str, imported: str) -> bool:
    top = imported.split(".", maxsplit=1)[0]
    if top not in PLACES:
        return top not in SDK
    if top in {"dynashard", "dynashard_patterns"}:
        return room(imported) == "" and len(imported.split(".")) <= 2
    # The domain declares how its entities are exposed; the type of that belongs to what serves.
    return top == "domain" or imported.startswith(EXPOSING)


def done_at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that run at import: all but bodies of functions, lambdas and `if __name__ == "__main__"`."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [*node.decorator_list, *node.args.defaults, *[d for d in node.args.kw_defaults if d]]
        elif isinstance(node, ast.Lambda):
            waiting += node.args.defaults
        elif isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.AnnAssign):
            waiting += [node.value] if node.value else []
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            yield node
            waiting += ast.iter_child_nodes(node)


def reads_at_import(tree: ast.Module) -> list[str]:
    """Return the uses of the environment, the clock, randomness or AWS at import."""
    found = []
    for node in done_at_import(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb"}:
            found.append(ast.unparse(node))
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            if name in READS | {"open", "connect", "read_text", "read_bytes"}:
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("source", everything(), ids=lambda source: source.name)
def test_module_imports_only_what_the_design_allows(source: Source) -> None:
    assert arrows_against_the_design(source) == []


@pytest.mark.parametrize(
    "source",
    [source for place in (*PACKAGES, "domain", "functions", "stacks") for source in sources(place)],
    ids=lambda source: source.name,
)
def test_module_reads_nothing_when_it_is_imported(source: Source) -> None:
    assert reads_at_import(source.tree) == []


def test_every_room_of_the_layer_has_its_floor() -> None:
    rooms = {source.name.split(".")[1] for source in sources("dynashard") if "." in source.name}

    assert rooms <= FLOORS.keys()


def in_a_circle(modules: list[Source]) -> set[str]:
    """Return modules that import each other, directly or through others. Imports by packages are left out."""
    names = {source.name for source in modules}
    arrows = {s.name: {target(i, names) for i in s.imports} - {None, s.name} for s in modules if not s.package}
    done: set[str] = set()
    while ready := {name for name, to in arrows.items() if name not in done and not (to & arrows.keys()) - done}:
        done |= ready
    return arrows.keys() - done


@pytest.mark.parametrize("package", PACKAGES)
def test_the_modules_of_a_package_have_no_import_cycle(package: str) -> None:
    assert in_a_circle(list(sources(package))) == set()


def test_an_import_cycle_is_reported() -> None:
    code = {"a": "from p.b import x", "b": "def f():\n    from p import c", "c": "import p.a", "d": "import p.a"}
    modules = [Source(f"p.{name}", package=False, code=text) for name, text in code.items()]

    assert in_a_circle(modules) == {"p.a", "p.b", "p.c", "p.d"}
    assert in_a_circle(modules[1:]) == set()


def target(imported: str, names: set[str]) -> str | None:
    return (
        imported if imported in names else imported.rpartition(".")[0] if imported.rpartition(".")[0] in names else None
    )


def test_synthesis_is_hermetic() -> None:
    known = {source.name: source for source in everything()}
    waiting = [Source("app", package=False, code=(ROOT / "app.py").read_text("utf-8"))]
    seen: set[str] = set()
    outside = []
    while waiting:
        source = waiting.pop()
        outside += [f"{source.name}: {each}" for each in source.imports if each.split(".")[0] in OUTSIDE]
        for each in source.imports:
            name = target(each, set(known))
            if name and name not in seen:
                seen.add(name)
                waiting.append(known[name])

    assert outside == []
    assert {"dynashard.schema", "stacks.data"} <= seen


VIOLATIONS = [
    ("dynashard.errors", "import dynashard.schema"),
    ("dynashard.schema", "from pydantic import BaseModel"),
    ("dynashard.keys", "from dynashard.placement import CALCULATED"),
    ("dynashard.placement", "import pydantic"),
    ("dynashard.codec.encode", "from dynashard.entity import Entity"),
    ("dynashard.entity.model", "from dynashard.transport import Transport"),
    ("dynashard.topology", "from dynashard.routing import Router"),
    ("dynashard.routing", "def late():\n    from dynashard.repository import Repository"),
    ("dynashard.repository.batch", "from ..reads import Page"),
    ("dynashard.repository.batch", "from .. import service"),
    ("dynashard.repository.batch", "from dynashard import Entity"),
    ("dynashard.repository.batch", "import botocore.session"),
    ("dynashard.reads.query", "import boto3"),
    ("dynashard.reads.query", "from domain import User"),
    ("dynashard.service", "from functions.api import app"),
    ("dynashard.service", "from dynashard_patterns import Edges"),
    ("dynashard_patterns.edges.store", "from dynashard_serving.limits import MAX_QUERIES"),
    ("dynashard_patterns.edges.store", "import botocore.session"),
    ("dynashard_serving.backend", "from domain import User"),
    ("dynashard_serving.backend", "from functions.api import app"),
    ("dynashard_client.rest", "from dynashard_patterns import Edges"),
    ("stacks.data", "from dynashard_serving.limits import MAX_QUERIES"),
    ("stacks.data", "from dynashard.entity import Entity"),
    ("stacks.data", "import dynashard"),
    ("stacks.data", "from dynashard import Entity"),
    ("stacks.api", "from functions.api import handler"),
    ("functions.api.handler", "from functions.prewarm import plan"),
    ("functions.api.handler", "from ..prewarm import plan"),
    ("functions.api.handler", "from dynashard.codec import encode_value"),
    ("functions.api.handler", "from local.settings import Settings"),
    ("domain.users", "from dynashard.entity.model import Entity"),
    ("domain.users", "import boto3"),
    ("domain.users", "from dynashard_serving.operations.served import Served"),
    ("domain.users", "from functions.api import app"),
]


@pytest.mark.parametrize(("module", "code"), VIOLATIONS)
def test_an_import_against_the_design_is_reported(module: str, code: str) -> None:
    assert arrows_against_the_design(Source(module, package=False, code=code)) != []


@pytest.mark.parametrize(
    "code",
    [
        "import os\nREGION = os.environ['AWS_REGION']",
        "import os\nREGION = os.getenv('AWS_REGION')",
        "from os import getenv\nREGION = getenv('AWS_REGION')",
        "import os\ndef f(region=os.environ.get('AWS_REGION')): ...",
        "import time\nSTARTED: float = time.time()".replace(": float", ""),
        "from datetime import datetime\nclass A:\n    at = datetime.now()",
        "import boto3\ntable = boto3.resource('dynamodb')",
        "import boto3\nif True:\n    client = boto3.client('dynamodb')",
        "from dynashard.transport import connect\ntransport = connect()",
        "@cache(os.environ)\ndef f(): ...",
        "SECRET = open('secret').read()",
    ],
)
def test_a_read_at_import_is_reported(code: str) -> None:
    assert reads_at_import(ast.parse(code)) != []


def test_a_read_within_a_function_is_allowed() -> None:
    code = "import os, time\nCLOCK = time.time\ndef f(): return os.environ\ng = lambda: time.time()\n"

    assert reads_at_import(ast.parse(code)) == []


@pytest.mark.parametrize("module", ["dynashard", "domain", "dynashard.schema", "dynashard.service"])
def test_importing_the_layer_loads_no_sdk(module: str) -> None:
    names = "import dynashard; [getattr(dynashard, name) for name in dynashard.__all__]"
    code = f"import sys, {module}; {names}; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603

    assert "dynashard.repository.repository" in loaded
    assert {name.split(".")[0] for name in loaded} & {"botocore", "boto3", "aws_cdk", "urllib3", "requests"} == set()


def test_a_declaration_loads_neither_reads_nor_writes() -> None:
    code = "import sys; from dynashard import Entity, Index, Key, Shards, new_id; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603

    rooms = {room(name) for name in loaded if name.startswith("dynashard.")}
    assert rooms == {"codec", "entity", "errors", "keys", "placement", "schema"}


@pytest.mark.parametrize("package", [dynashard, dynashard_patterns])
def test_a_package_exports_exactly_its_listed_names(package: ModuleType) -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Repository'"):
        package.Repository  # noqa: B018


def test_importing_the_schema_loads_nothing_else() -> None:
    code = "import sys, dynashard.schema; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603

    assert {name for name in loaded if name.partition(".")[0] == "dynashard"} == {"dynashard", "dynashard.schema"}
    assert "pydantic" not in loaded


def package_modules() -> list[ModuleType]:
    return [
        importlib.import_module(name)
        for package in PACKAGES
        for name in (package, *(each.name for each in pkgutil.walk_packages([str(PLACES[package])], f"{package}.")))
    ]


@pytest.mark.parametrize("package", [dynashard, dynashard_patterns])
def test_every_public_name_of_a_package_is_documented(package: ModuleType) -> None:
    for name in package.__all__:
        value = getattr(package, name)

        assert inspect.getdoc(value), name
        assert value.__doc__, name


@pytest.mark.parametrize("module", package_modules(), ids=lambda module: module.__name__)
def test_every_public_part_of_a_module_is_documented(module: ModuleType) -> None:
    undocumented = [] if module.__doc__ else [module.__name__]
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        undocumented += [] if value.__doc__ else [name]
        for member, inner in vars(value).items() if inspect.isclass(value) else ():
            function = inner.fget if isinstance(inner, property) else getattr(inner, "__func__", inner)
            if not member.startswith("_") and inspect.isfunction(function) and not function.__doc__:
                undocumented.append(f"{name}.{member}")

    assert undocumented == []
