"""The rules of imports between rooms, and of code that runs at import."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from tests.unit.project.rooms import FLOORS, FUNCTIONS, PACKAGES, PLACES, ROOT, Source, everything, room, sources

pytestmark = pytest.mark.unit

PURE = {0: set(sys.stdlib_module_names), 1: set(sys.stdlib_module_names) | {"msgspec", "orjson", "xxhash"}}
"""The packages that the two lowest floors may import."""
SDK = {"botocore", "boto3"}
SPEAKS_SDK = {"transport"}
"""The rooms that may import the SDK."""
AWS_SERVICES = "dynashard_serving.aws_services"
"""The module that asks the other services of AWS. It imports the SDK on first use."""
OTHER_SERVICES = "dynashard.transport.aws"
"""The module of the library that asks other services than DynamoDB."""
FINDS_BACKENDS = "dynashard.locations"
"""The module of the library that knows the stacks of a backend, and the data folder of the local stack."""
READS_ENVIRONMENT = {"service", "locations", "transport", "testing"}
"""The rooms of the library that read the variables of a process."""
STORAGE = {"keys", "placement", "codec", "topology", "routing"}
"""The rooms that decide how items are stored. Handlers must not import them."""
DECLARING = "dynashard_serving.declare."
"""The module with which a domain says how it is served."""
TRIES_SAMPLES = ("dynashard_checks.", "dynashard_lab.bench.")
"""The packages that try the sample domain. All others find what the domain declares, and name nothing of it."""
OF_THE_COMMAND_LINE = ("dynashard_checks.preflight.", "dynashard_checks.verify_aws.")
TESTS_ONLY = "dynashard.testing"
"""The room for tests. Nothing that is deployed imports it."""
TESTING = ("dynashard_checks", "dynashard_lab")
"""The packages that are tests themselves."""
OUTSIDE = {"subprocess", "socket", "urllib", "http", "ssl", "time", "datetime", "random", "secrets", "uuid", *SDK}
"""The modules that a hermetic synthesis must not import."""
READS = {
    "environ", "getenv", "environb", "now", "utcnow", "today", "time", "time_ns", "monotonic", "perf_counter",
    "get_session", "Session", "client", "resource", "urandom", "token_bytes", "token_urlsafe", "token_hex", "uuid4",
}  # fmt: skip
"""The names whose use reads the environment, the clock, randomness or AWS."""


def forbidden_imports(source: Source) -> list[str]:
    place = source.name.split(".")[0]
    allowed = {
        "dynashard": layer_allows,
        **dict.fromkeys(PACKAGES.keys() - {"dynashard"}, package_allows),
        **dict.fromkeys(("dynashard_local", "dynashard_tools", "dynashard_lab", "dynashard_checks"), tools_allow),
        "dynashard_cdk": constructs_allow,
        "stacks": stacks_allow,
        "functions": functions_allow,
        "domain": domain_allows,
    }
    check = allowed.get(place)
    for_tests = [
        each
        for each in source.imports
        if each.startswith(TESTS_ONLY) and not source.name.startswith((TESTS_ONLY, *TESTING))
    ]
    return [*for_tests, *(imported for imported in source.imports if check and not check(source.name, imported))]


def layer_allows(module: str, imported: str) -> bool:
    top, mine, floor = imported.split(".", maxsplit=1)[0], room(module), FLOORS[room(module)]
    if top in PLACES and top != "dynashard":
        return False
    if top != "dynashard":
        return (top not in SDK or mine in SPEAKS_SDK) and top in PURE.get(floor, {top})
    if imported.startswith(OTHER_SERVICES):
        return module == FINDS_BACKENDS
    if imported.startswith(FINDS_BACKENDS):
        return module == "dynashard.service"
    theirs = room(imported)
    return theirs == mine or FLOORS[theirs] < floor


def package_allows(module: str, imported: str) -> bool:
    mine, top = module.split(".", maxsplit=1)[0], imported.split(".", maxsplit=1)[0]
    if (function := function_of(module)) is not None:
        return function_allows(function, imported)
    if top in PLACES:
        return (top == mine and function_of(imported) is None) or top in PACKAGES[mine]
    # The client invokes functions, which is an AWS interface of its own.
    return top not in SDK or mine == "dynashard_client" or module == AWS_SERVICES


def function_of(module: str) -> str | None:
    """Return the function whose code a module is; None if it is shared."""
    top, _, rest = module.partition(".")
    second = rest.split(".")[0]
    return second if top == "dynashard_serving" and second in FUNCTIONS else None


def function_allows(function: str, imported: str) -> bool:
    top = imported.split(".", maxsplit=1)[0]
    if top == "dynashard_serving":
        return function_of(imported) in {None, function}
    if top == "dynashard":
        return room(imported) not in STORAGE
    return top not in PLACES or top == "dynashard_patterns"


def tools_allow(module: str, imported: str) -> bool:
    tries = module.startswith(TRIES_SAMPLES) and not module.startswith(OF_THE_COMMAND_LINE)
    return imported.split(".", maxsplit=1)[0] != "domain" or tries


def constructs_allow(_module: str, imported: str) -> bool:
    top = imported.split(".", maxsplit=1)[0]
    if top == "dynashard":
        return room(imported) == "schema"
    if top == "dynashard_serving":
        return imported.startswith(("dynashard_serving.tenants", "dynashard_serving.telemetry.metric_names"))
    return top not in PLACES or top == "dynashard_cdk"


def stacks_allow(_module: str, imported: str) -> bool:
    return imported.split(".", maxsplit=1)[0] not in PLACES.keys() - {"stacks", "dynashard_cdk"}


def functions_allow(module: str, imported: str) -> bool:
    """A handler names the package's room of its function, and nothing else."""
    mine = module.split(".")
    return len(mine) > 1 and imported.startswith(f"dynashard_serving.{mine[1]}.")


def domain_allows(_module: str, imported: str) -> bool:
    top = imported.split(".", maxsplit=1)[0]
    if top not in PLACES:
        return top not in SDK
    if top in {"dynashard", "dynashard_patterns"}:
        return room(imported) == "" and len(imported.split(".")) <= 2
    return top == "domain" or imported.startswith(DECLARING)


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


def test_modules_import_only_what_the_design_allows() -> None:
    assert {source.name: found for source in everything() if (found := forbidden_imports(source))} == {}


def test_one_place_decides_which_transport_a_process_uses() -> None:
    one_of_them = ("dynashard.transport.direct", "dynashard.transport.sdk")
    # Checks and benchmarks hold one transport against the other.
    compares = ("dynashard.transport", "dynashard_checks.", "dynashard_lab.bench.")
    found = [s.name for s in everything() if not s.name.startswith(compares)
             for each in s.imports if each.startswith(one_of_them)]  # fmt: skip

    assert found == []


def reads_environment(source: Source) -> bool:
    """Return whether a module reads the variables of the process, at import or later."""
    names = {node.attr for node in source.nodes(ast.Attribute)}
    imported = {each.rpartition(".")[2] for each in source.imports if each.startswith("os.")}
    return not (names | imported).isdisjoint({"environ", "environb", "getenv", "getenvb"})


def test_the_library_reads_the_environment_where_it_finds_a_backend_or_its_credentials() -> None:
    found = {source.name for source in sources("dynashard") if reads_environment(source)}

    assert {name for name in found if room(name) not in READS_ENVIRONMENT} == set()
    assert {"dynashard.service", FINDS_BACKENDS, "dynashard.transport"} <= found


@pytest.mark.parametrize("place", [*PACKAGES, "dynashard_cdk", "domain", "functions", "stacks"])
def test_modules_read_nothing_when_they_are_imported(place: str) -> None:
    assert {source.name: found for source in sources(place) if (found := reads_at_import(source.tree))} == {}


def test_every_room_of_the_layer_has_its_floor() -> None:
    rooms = {source.name.split(".")[1] for source in sources("dynashard") if "." in source.name}

    assert rooms <= FLOORS.keys()


def modules_in_cycles(modules: list[Source]) -> set[str]:
    """Return modules that import each other, directly or through others. Imports by packages are left out."""
    names = {source.name for source in modules}
    arrows = {s.name: {target(i, names) for i in s.imports} - {None, s.name} for s in modules if not s.package}
    done: set[str] = set()
    while ready := {name for name, to in arrows.items() if name not in done and not (to & arrows.keys()) - done}:
        done |= ready
    return arrows.keys() - done


@pytest.mark.parametrize("package", PACKAGES)
def test_the_modules_of_a_package_have_no_import_cycle(package: str) -> None:
    assert modules_in_cycles(list(sources(package))) == set()


def test_an_import_cycle_is_reported() -> None:
    code = {"a": "from p.b import x", "b": "def f():\n    from p import c", "c": "import p.a", "d": "import p.a"}
    modules = [Source(f"p.{name}", package=False, code=text) for name, text in code.items()]

    assert modules_in_cycles(modules) == {"p.a", "p.b", "p.c", "p.d"}
    assert modules_in_cycles(modules[1:]) == set()


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
    assert {"dynashard.schema", "dynashard_cdk.data", "stacks.backend"} <= seen


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
    ("dynashard.service", "from dynashard_serving.api import app"),
    ("dynashard.service", "from dynashard_patterns import Edges"),
    ("dynashard.transport.sdk", "def late():\n    from dynashard_patterns import Edges"),
    ("dynashard.transport.direct.transport", "from dynashard.topology import LeasedTopology"),
    ("dynashard.transport.direct.transport", "from dynashard_serving.limits import MAX_QUERIES"),
    ("dynashard.transport.sdk", "from dynashard.transport.aws import sdk_client"),
    ("dynashard.growth.opening", "def late():\n    from dynashard.transport.aws import stack_outputs"),
    ("dynashard.testing.sandbox", "from dynashard.locations import local_stack"),
    ("dynashard.awaiting.service", "from dynashard import locations"),
    ("dynashard_patterns.edges.store", "from dynashard_client import BackendClient"),
    ("dynashard_patterns.edges.store", "from dynashard_serving.limits import MAX_QUERIES"),
    ("dynashard_patterns.edges.store", "import botocore.session"),
    ("dynashard_serving.backend", "from domain import User"),
    ("dynashard_serving.backend", "from dynashard_serving.api import app"),
    ("dynashard_client.rest", "from dynashard_patterns import Edges"),
    ("dynashard_cdk.data", "from dynashard_serving.limits import MAX_QUERIES"),
    ("dynashard_cdk.data", "from dynashard_serving.telemetry.powertools import Figure"),
    ("dynashard_cdk.data", "from dynashard.entity import Entity"),
    ("dynashard_cdk.data", "import dynashard"),
    ("dynashard_cdk.data", "from dynashard import Entity"),
    ("dynashard_cdk.api", "from dynashard_serving.api import handler"),
    ("dynashard_serving.api.handler", "from dynashard_serving.prewarm import plan"),
    ("dynashard_serving.api.handler", "from ..prewarm import plan"),
    ("dynashard_serving.api.handler", "from dynashard.codec import encode_value"),
    ("dynashard_serving.api.handler", "from dynashard_local.settings import Settings"),
    ("dynashard_serving.api.handler", "from domain.samples.users import User"),
    ("dynashard_local.run", "from domain.samples.users import User"),
    ("dynashard_tools.entities", "import domain"),
    ("dynashard_lab.plan.planner", "from domain.samples.users import User"),
    ("dynashard_checks.verify_aws.check", "from domain.samples.users import User"),
    ("functions.api.handler", "from dynashard_serving.prewarm.handler import step"),
    ("functions.api.handler", "from dynashard import Dynashard"),
    ("stacks.backend", "from dynashard_serving.telemetry.metric_names import CHANGES_LAG"),
    ("domain.users", "from dynashard.entity.model import Entity"),
    ("domain.users", "import boto3"),
    ("domain.users", "from dynashard_serving.operations.served import Served"),
    ("domain.users", "from dynashard_serving.api import app"),
]


@pytest.mark.parametrize(("module", "code"), VIOLATIONS)
def test_an_import_against_the_design_is_reported(module: str, code: str) -> None:
    assert forbidden_imports(Source(module, package=False, code=code)) != []


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


def imports_by_string(source: Source) -> list[str]:
    """Return the imports whose module is a value, and the searches for a module by such a name."""
    found = []
    for node in source.nodes(ast.Call):
        if not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if called in {"import_module", "__import__", "find_spec"}:
            found.append(ast.unparse(node))
    return found


def ours_as_any(source: Source, names: set[str]) -> list[str]:
    """Return the parameters, variables and attributes with these names that are typed as Any."""
    found = []
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = [*source.nodes(ast.FunctionDef)]
    for function in [*functions, *source.nodes(ast.AsyncFunctionDef)]:
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        found += [
            f"{function.name}({each.arg})" for each in parameters if each.arg in names and is_any(each.annotation)
        ]
    for node in source.nodes(ast.AnnAssign):
        if is_any(node.annotation):
            name = ast.unparse(node.target)
            found += [name] if name.rpartition(".")[2].lstrip("_") in names else []
    return found


def is_any(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).strip("\"'") in {"Any", "Any | None", "None | Any"}


@cache
def names_of_ours(places: tuple[str, ...]) -> set[str]:
    """Return the names of the public classes of packages in snake case, and what else instances of them are called."""
    named = {
        node.name
        for place in places
        for source in sources(place)
        for node in source.nodes(ast.ClassDef)
        if not node.name.startswith("_")
    }
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in named} - PLAIN | INSTANCES


TYPED = tuple(PACKAGES)
"""The packages whose classes are not passed as Any."""
PLAIN = {
    "answer", "claim", "client", "config", "context", "end", "event", "field", "index", "items", "key", "kind",
    "member", "number", "part", "row", "target", "write",
}  # fmt: skip
"""Names of classes that values of any type have too: a field of pydantic, a key as people type it, Lambda's event."""
INSTANCES = {"caller", "collection", "item", "new", "old"}
"""Names of what has entities, callers and collections, whatever their classes are called."""
BY_NAME = {
    "dynashard.transport.direct.endpoint": "finds botocore's certificates without importing botocore",
    "dynashard_serving.api.openapi.page": "finds the Swagger UI within Powertools, whose code is not in the bundle",
    "dynashard_serving.discovery": "walks through the modules of a domain, which an adopter has written",
    "dynashard_serving.domain": "loads the domain, and from a bundle only the modules that its index names",
    "dynashard_cdk.bundling": "finds the packages to deploy, which a synthesis does not import",
    "dynashard_local.deploy.placeholders": "runs where only ministack is installed",
    "dynashard_local.functions.environment": "loads the handler that the template names, as Lambda does",
    "dynashard_tools.app": "imports a command when it is called; a test imports all",
    "dynashard_tools.cli": "asks whether there is a domain, without importing it",
    "dynashard_tools.program": "loads the program that DYNASHARD_DB names",
    "dynashard_lab.bench.apart": "loads the client to measure, in a process of its own",
    "dynashard_lab.bench.clients.interface": "loads one peer, of which not all are installed",
    "dynashard_lab.bench.peers.handlers": "loads the handler to measure, in a process of its own",
    "dynashard_lab.bench.rows.handler": "loads both handlers to measure, and copies the domain",
    "dynashard_checks.hostile": "loads the handler to measure, in a process of its own",
}
"""The modules that import or look for others by name, with the reason."""


def test_no_module_is_imported_by_a_string_without_a_reason() -> None:
    assert {source.name: found for source in everything()
            if (found := imports_by_string(source)) and source.name not in BY_NAME} == {}  # fmt: skip


def test_every_reason_is_needed() -> None:
    found = {source.name for source in everything() if imports_by_string(source)}

    assert BY_NAME.keys() - found == set()


@pytest.mark.parametrize("place", TYPED)
def test_no_class_of_ours_is_passed_as_any(place: str) -> None:
    names = names_of_ours(TYPED)
    assert {source.name: found for source in sources(place) if (found := ours_as_any(source, names))} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from importlib import import_module\nimport_module('dynashard_patterns.edges')",
        "import importlib\ndef f(name): return importlib.import_module(name)",
        "from importlib import import_module\nimport_module(f'{room}.model')",
        "edges = __import__('dynashard_patterns.edges')",
        "from importlib import import_module\ndef __getattr__(name): return import_module(f'{__name__}.{name}')",
        "from importlib.util import find_spec\nspec = find_spec('dynashard_patterns')",
    ],
)
def test_an_import_by_a_string_is_reported(code: str) -> None:
    assert imports_by_string(Source("dynashard.service", package=False, code=code)) != []


def test_a_class_of_ours_as_any_is_reported() -> None:
    code = """
class A:
    _store: Any
    def f(self, store: Any, *, retry_policy: Any, value: Any, entity: Entity) -> Any: ...
    async def g(self, caller: Any | None, collection: "Any", item: Any) -> Any:
        found, entity = 1, 2
        entity: Any = definition(self.of)
        value: Any = 3
"""

    found = ours_as_any(Source("dynashard.reads", package=False, code=code), names_of_ours(("dynashard",)))

    assert sorted(found) == sorted(
        ["_store", "f(store)", "f(retry_policy)", "g(caller)", "g(collection)", "g(item)", "entity"]
    )
