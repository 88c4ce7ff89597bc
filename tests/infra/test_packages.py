"""The distributions of this repository contain their modules, and declare exactly the packages they import."""

import ast
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from dynashard_tools.version import VERSION
from packages.wheels import DISTRIBUTIONS, ROOT, Distribution
from tests.wheels import built, wheel_of

pytestmark = pytest.mark.infra

NAME = re.compile(r"[A-Za-z0-9_.-]+")
THE_BACKENDS_OWN = {"domain", "functions", "stacks"}
"""What a distribution may import of the backend that uses it."""
LOADED_BY_OTHERS = {"httptools", "setuptools", "sniffio", "uvloop"}
"""What the local stack's server, the bundles and httpx need, and no module of ours imports."""
USES: Mapping[str, str] = {
    "dynashard": """
from dynashard import Dynashard, Entity, Key, Shards, connect, new_id, __all__
import dynashard, dynashard_patterns
class User(Entity, name="user.v1.User", key=Key(partition="{tenant_id}", sort="{id}"), shards=Shards(16)):
    tenant_id: str
    id: str = new_id()
[getattr(dynashard, name) for name in __all__]
[getattr(dynashard_patterns, name) for name in dynashard_patterns.__all__]
with Dynashard.local({"DYNAMODB_PORT": "1", "DATA_DIR": "."}) as db:
    db.collection(User)
""",
    "dynashard-backend": "import dynashard_serving.operations.item_writes, dynashard_serving.backend",
    "dynashard-cdk": "import dynashard_cdk.settings; from dynashard_cdk.build import _lock; from pathlib import Path\n"
    "assert 'botocore==' in _lock(Path(), 'sharding')",
    "dynashard-tools": "import dynashard_local.template; from dynashard_tools.version import VERSION\n"
    "assert list(dynashard_local.template.committed().of_type('AWS::Lambda::Function'))",
    "dynashard-client": """
import sys
from dynashard_client import Client, EngineUnavailableError, Item, Retries, __all__
class User(Item, path="users"):
    id: str
with Client.rest("http://127.0.0.1:1", token="t", retries=Retries(attempts=1)) as client:
    try:
        client.collection(User).get("ada")
    except EngineUnavailableError:
        pass
import asyncio
from dynashard_client import AsyncClient
assert not {"dynashard", "dynashard_serving", "botocore", "httpx"} & sys.modules.keys()
async def awaited():
    async with AsyncClient.rest("http://127.0.0.1:1", token="t", retries=Retries(attempts=1)) as client:
        try:
            await client.collection(User).get("ada")
        except EngineUnavailableError:
            return
asyncio.run(awaited())
""",
}
"""What is run with only a wheel, and those it depends on, installed."""


def named(distribution: Distribution) -> str:
    return distribution.name


def requirements_of(distribution: Distribution) -> list[str]:
    project = distribution.project
    extras: Mapping[str, list[str]] = project.get("optional-dependencies", {})
    return [*project["dependencies"], *(each for listed in extras.values() for each in listed)]


def declared(distribution: Distribution) -> set[str]:
    return {found[0].lower() for text in requirements_of(distribution) if (found := NAME.match(text))}


def imported(distribution: Distribution) -> set[str]:
    """Return the distributions of the modules that this one imports."""
    ours = {Path(package).name: each.name for each in DISTRIBUTIONS for package in each.packages}
    # What is copied is data: files of a new backend.
    copied = set(distribution.copied.values())
    code = [path for place, path in distribution.files.items() if place.endswith(".py") and place not in copied]
    names = {name for path in code for name in imports_of(path)} - sys.stdlib_module_names - THE_BACKENDS_OWN
    known = installed_packages()
    # `constructs` and `jsii` are also listed as parts of others.
    found = {ours.get(name) or known[name][0].lower().replace("_", "-") for name in names}
    return found - {distribution.name}


@cache
def installed_packages() -> Mapping[str, list[str]]:
    """Return the distributions that hold each package; finding them reads the lists of all files, seconds."""
    return packages_distributions()


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels, by distribution."""
    folder = built(tmp_path_factory)
    return {each.name: wheel_of(each.name, folder) for each in DISTRIBUTIONS}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=named)
def test_a_distribution_declares_what_it_imports_and_nothing_else(distribution: Distribution) -> None:
    assert declared(distribution) - LOADED_BY_OTHERS == imported(distribution)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=named)
def test_all_distributions_have_one_version_and_want_each_other_in_it(distribution: Distribution) -> None:
    ours = [text for text in requirements_of(distribution) if text.startswith("dynashard")]

    assert distribution.project["version"] == VERSION
    assert [text for text in ours if not text.endswith(f"=={VERSION}")] == []


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=named)
def test_a_wheel_holds_all_its_files_and_nothing_else(distribution: Distribution, wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels[distribution.name]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert held == set(distribution.files)


def test_building_wheels_leaves_nothing_behind_in_the_checkout(wheels: dict[str, Path]) -> None:
    left = [
        path
        for folder in ("layers", "packages")
        for pattern in ("build", "*.egg-info")
        for path in (ROOT / folder).rglob(pattern)
    ]

    assert len(wheels) == len(DISTRIBUTIONS)
    assert left == []


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=named)
def test_a_wheel_works_with_those_that_it_declares(
    distribution: Distribution, wheels: dict[str, Path], tmp_path: Path
) -> None:
    names = {each.name: each for each in DISTRIBUTIONS}
    waiting, needed = [distribution], set[str]()
    while waiting:
        found = waiting.pop()
        needed.add(found.name)
        waiting += [names[name] for name in declared(found) & names.keys() if name not in needed]
    for name in needed:
        # Installed rather than imported from the zip: some packages read files beside their modules.
        zipfile.ZipFile(wheels[name]).extractall(tmp_path / "site")
    # Without `site` the environment does not put this checkout on the path.
    path = [str(tmp_path / "site"), sysconfig.get_paths()["purelib"]]
    code = f"import sys; sys.path += {path!r}\n{USES[distribution.name]}"

    done = subprocess.run(  # noqa: S603
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
