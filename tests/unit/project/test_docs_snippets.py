"""Code snippets on pages fit this version: they compile, their names exist, and their declarations are valid."""

import ast
import builtins
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from dynashard import DeclarationError, Registry, definition
from dynashard_tools.commands import app
from dynashard_tools.new.template import rendered
from tests.markdown import ROOT, Snippet, pages, prose, snippets
from tests.unchanged import RECORDS

pytestmark = pytest.mark.unit

SNIPPETS = [snippet for page in pages() for snippet in snippets(page, page.read_text("utf-8"))]
PYTHON = [snippet for snippet in SNIPPETS if snippet.language == "python"]
ELSEWHERE = {
    "Annotated": "typing", "Any": "typing", "Final": "typing",
    "BaseModel": "pydantic", "Field": "pydantic", "JsonValue": "pydantic",
    "Decimal": "decimal", "datetime": "datetime",
}  # fmt: skip
"""The names of other packages that snippets use without an import."""
EXAMPLES = {"Customer", "Note", "Stock", "MARK", "W"}
"""The names of variables of the reader in snippets."""
FUTURE = {
    "layers/domain/python/domain/entries.py",
    "layers/domain/python/domain/events.py",
    "layers/domain/python/domain/projects.py",
    "layers/domain/python/domain/tasks.py",
    "tests/test_tasks.py",
}
"""The files that pages ask readers to write."""
COMMAND = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?dynashard (.*)$")
TARGETS = r"^([a-z0-9-]+):.*## "
TARGET = re.compile(r"(?:^|[`\s])make ([a-z][a-z0-9-]*)")
TEST = re.compile(r"`(test_\w+)`")
BUILT = re.compile(r"`(build/[\w-]+(?:\.\w+)+)`")
LOOP = re.compile(r"for name in ([^;]+); do(.*?)\bdone\b", re.DOTALL)
FILE = re.compile(r"`((?:bench|clients|docs|examples|functions|layers|local|stacks|tests|tools)/[\w./*-]+)`")


@cache
def defined() -> dict[str, list[str]]:
    """Return the modules of the layers and clients by the names that they define."""
    found: dict[str, list[str]] = {}
    for folder in (*ROOT.glob("layers/*/python"), *ROOT.glob("packages/client")):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            for node in ast.parse(path.read_text("utf-8")).body:
                for name in _names_of(node):
                    found.setdefault(name, []).append(module)
    return found


def _names_of(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            yield node.name
        case ast.Assign():
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def used(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def set_by(tree: ast.AST) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return names | {alias.asname or alias.name for node in imports for alias in node.names}


def value_of(name: str) -> Any:
    """What a name means in a snippet; the front doors come first.

    Raises:
        KeyError: nothing here has this name.
    """
    if name in ELSEWHERE:
        return getattr(importlib.import_module(ELSEWHERE[name]), name)
    for module in ("dynashard", "domain", *defined().get(name, ())):
        found = importlib.import_module(module)
        if hasattr(found, name):
            return getattr(found, name)
    return vars(builtins)[name]


@pytest.mark.parametrize("snippet", PYTHON, ids=lambda snippet: snippet.place)
def test_python_snippets_compile_and_their_imports_exist(snippet: Snippet) -> None:
    tree = compile(snippet.text, snippet.place, "exec", ast.PyCF_ONLY_AST)

    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("snippet", PYTHON, ids=lambda snippet: snippet.place)
def test_classes_and_constants_in_python_snippets_exist(snippet: Snippet) -> None:
    of_page = [ast.parse(other.text) for other in PYTHON if other.page == snippet.page]
    own = set().union(set(), *map(set_by, of_page))
    tree = ast.parse(snippet.text)

    unknown = []
    for name in used(tree) - own - EXAMPLES:
        # Other names are variables of the reader, such as `users` or `db`.
        if name[0].isupper():
            try:
                value_of(name)
            except KeyError:
                unknown.append(name)

    assert unknown == []


def declarations(snippet: Snippet) -> Iterator[ast.stmt]:
    """Return the statements of a snippet that declare entities or a client's items with their fields, or use such."""
    for node in ast.parse(snippet.text).body:
        if isinstance(node, ast.ClassDef) and any(
            isinstance(base, ast.Name) and base.id == "Item" for base in node.bases
        ):
            yield node
        elif isinstance(node, ast.ClassDef) and any(isinstance(part, ast.AnnAssign) for part in node.body):
            if _is_entity(node):
                # The domain may have an entity of this name.
                node.keywords.append(ast.keyword("registry", ast.Name("_registry", ast.Load())))
            yield ast.fix_missing_locations(node)
        elif (isinstance(node, ast.FunctionDef) and _upgrades(node.name, snippet.text)) or (
            isinstance(node, ast.Assign) and all(name[0].isupper() for name in used(node))
        ):
            yield node


def _upgrades(name: str, text: str) -> bool:
    """Whether a function is one with which a declaration upgrades stored items."""
    keywords = (each for node in ast.parse(text).body if isinstance(node, ast.ClassDef) for each in node.keywords)
    return any(each.arg == "upgrade" and name in used(each.value) for each in keywords)


def _is_entity(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and any(each.arg == "name" for each in node.keywords)


DECLARING = [
    snippet for snippet in PYTHON if any(isinstance(statement, ast.ClassDef) for statement in declarations(snippet))
]


@pytest.mark.parametrize("snippet", DECLARING, ids=lambda snippet: snippet.place)
def test_declarations_in_python_snippets_are_valid(snippet: Snippet) -> None:
    space: dict[str, Any] = {"_registry": Registry(), "__name__": __name__}

    for statement in declarations(snippet):
        own = set_by(statement) if isinstance(statement, ast.FunctionDef) else set()
        for name in used(statement) - own - space.keys():
            space[name] = value_of(name)
        exec(compile(ast.Module([statement], []), snippet.place, "exec"), space)  # noqa: S102 - as printed is the point

    classes = [node for node in ast.parse(snippet.text).body if isinstance(node, ast.ClassDef) and node.name in space]
    assert classes
    entities = [space[each.name] for each in classes if _is_entity(each)]
    assert {definition(each).name for each in entities} == set(space["_registry"])


def test_a_wrong_declaration_is_reported() -> None:
    wrong = Snippet(
        ROOT / "docs" / "wrong.md",
        1,
        "python",
        'class A(Entity, name="a.v1.A", key=Key("{t}", "{id}"), shards=Shards(7)):\n    t: str\n    id: str\n',
    )

    with pytest.raises(DeclarationError, match="7"):
        test_declarations_in_python_snippets_are_valid(wrong)


def test_an_unknown_name_is_reported() -> None:
    wrong = Snippet(ROOT / "docs" / "wrong.md", 1, "python", "from dynashard import Unknown\nSharding(3)\n")

    with pytest.raises(AssertionError, match="Unknown"):
        test_python_snippets_compile_and_their_imports_exist(wrong)
    with pytest.raises(AssertionError, match="Sharding"):
        test_classes_and_constants_in_python_snippets_exist(wrong)


def test_an_unknown_command_is_reported() -> None:
    with pytest.raises(Exception, match="--no-such-option"):
        test_the_command_line_accepts_the_printed_commands("wrong.md:1", "list users --no-such-option")
    with pytest.raises(Exception, match="no-such-command"):
        test_the_command_line_accepts_the_printed_commands("wrong.md:1", "no-such-command users")


def test_the_declarations_of_the_main_pages_are_checked() -> None:
    names = {"README.md", "declaring.md", "attachments.md", "money.md", "rollups.md", "counters.md"}

    assert names <= {snippet.page.name for snippet in DECLARING}


def commands() -> Iterator[tuple[str, str]]:
    """Return the commands of the command line in blocks of code, each with its place."""
    for snippet in SNIPPETS:
        lines = snippet.text.replace("\\\n", " ").splitlines()
        for line in lines:
            found = COMMAND.match(line)
            if found and snippet.language in ("", "bash", "sh", "shell"):
                yield snippet.place, found[1]


@cache
def command_line() -> Any:
    """Return the command line. Typer takes long to build all of its commands."""
    return get_command(app)


@pytest.mark.parametrize(("place", "line"), sorted(set(commands())), ids=lambda text: text.replace(" ", "_")[:60])
def test_the_command_line_accepts_the_printed_commands(place: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    ends = [at for at, word in enumerate(words) if word in ("|", "||", ">", "&&", ";")]
    arguments = words[: ends[0]] if ends else words
    command = command_line()
    name = "dynashard"

    while isinstance(command, TyperGroup):
        context = command.context_class(command, info_name=name)
        if command.invoke_without_command and arguments[0].startswith("-"):
            break
        found, below, arguments = command.resolve_command(context, arguments)
        assert below is not None, place
        name, command = f"{name} {found}", below

    # A command that cannot be parsed raises an error that names the wrong word.
    assert command.make_context(name, list(arguments)).command is command, place


def _of_adopters(page: Path) -> bool:
    """Whether a page is about the folder of an adopter."""
    return page.parent.name == "recipes" or page.stem in {"backend", "deploying", "getting-started", "upgrading"}


def targets_in(page: Path) -> set[str]:
    """Return the targets of make that a page names."""
    text = page.read_text("utf-8")
    code = [line for snippet in snippets(page, text) for line in snippet.text.splitlines() if "make " in line]
    quoted = [part for _, line in prose(text) for part in re.findall(r"`[^`]+`", line)]
    return {found for line in [*code, *quoted] for found in TARGET.findall(line)}


def files_in(page: Path) -> set[str]:
    """Return the files that a page names."""
    lines = prose(page.read_text("utf-8"))
    return {found for _, line in lines for found in FILE.findall(line) if "/NAME" not in found} - FUTURE


@pytest.mark.parametrize("snippet", [each for each in SNIPPETS if each.title], ids=lambda snippet: snippet.place)
def test_a_file_to_write_is_named_in_the_text_because_forges_show_no_titles(snippet: Snippet) -> None:
    above = "\n".join(line for number, line in prose(snippet.page.read_text("utf-8")) if number < snippet.line)

    assert f"`{snippet.title}`" in above


def test_named_targets_and_files_exist() -> None:
    ours = set(re.findall(TARGETS, (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    made = rendered("notes")
    adopters = set(re.findall(TARGETS, made["Makefile"], re.MULTILINE))
    # A page about the past may name what no longer exists.
    current = [page for page in pages() if page.name != "CHANGELOG.md"]
    targets = {page: ours | adopters if _of_adopters(page) else ours for page in current}

    assert {page.name: unknown for page in current if (unknown := targets_in(page) - targets[page])} == {}
    files = {file for page in current for file in files_in(page)} - made.keys()
    assert [file for file in sorted(files) if not any(ROOT.glob(file.rstrip("/")))] == []


def written_by_make(makefile: str) -> set[str]:
    """Return the files in `build` that the commands of a Makefile name, in its loops one for each name."""
    looped = LOOP.sub(lambda loop: "\n".join(loop[2].replace("$$name", name) for name in loop[1].split()), makefile)
    return set(re.findall(r"build/[\w-]+(?:\.\w+)+", looped))


def test_a_file_in_build_that_a_page_names_is_written_by_a_target_or_by_the_tests() -> None:
    written = written_by_make((ROOT / "Makefile").read_text("utf-8")) | {RECORDS.as_posix()}
    current = [page for page in pages() if page.name != "CHANGELOG.md"]

    named = {file for page in current for _, line in prose(page.read_text("utf-8")) for file in BUILT.findall(line)}

    assert "build/sbom-sharding.cdx.json" in named
    assert named - written == set()


def missing_tests_in(text: str) -> list[str]:
    """Return the tests that a line of a page names and that none of the files defines which it names, too."""
    missing = []
    for _, line in prose(text):
        if names := TEST.findall(line):
            there = "".join((ROOT / file).read_text("utf-8") for file in FILE.findall(line))
            missing += [name for name in names if f"def {name}(" not in there]
    return missing


def test_the_tests_that_the_proof_names_are_in_the_files_beside_them() -> None:
    text = (ROOT / "docs" / "proof.md").read_text("utf-8")

    assert len(TEST.findall(text)) >= 10
    assert missing_tests_in(text) == []
    assert missing_tests_in("`tests/unit/keys/test_keys.py`: `test_that_nobody_has_written`") == [
        "test_that_nobody_has_written"
    ]
