"""The wheels of this repository contain their modules, and declare exactly the packages they import."""

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytestmark = pytest.mark.infra

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Package:
    """A distribution of this repository.

    Attributes:
        folder: where its pyproject.toml lies.
        module: its top-level module, and the folder of it.
        use: what is run with only its wheel, and those it depends on, installed.
    """

    folder: str
    module: str
    source: str
    use: str

    @property
    def project(self) -> dict[str, object]:
        found: dict[str, object] = tomllib.loads((ROOT / self.folder / "pyproject.toml").read_text())["project"]
        return found

    @property
    def declared(self) -> set[str]:
        listed, extras = self.project["dependencies"], self.project.get("optional-dependencies", {})
        assert isinstance(listed, list)
        assert isinstance(extras, dict)
        every = [*listed, *(text for extra in extras.values() for text in extra)]
        return {found[0].lower() for text in every if (found := NAME.match(text))}

    def imported(self) -> set[str]:
        """Return the distributions of the modules that this one imports."""
        names = {name for path in (ROOT / self.source).rglob("*.py") for name in imports_of(path)}
        known = packages_distributions()
        ours = {package.module: str(package.project["name"]) for package in PACKAGES}
        # An adopter's domain is found by its name: nothing installs it.
        outside = names - sys.stdlib_module_names - {self.module, "domain"}
        return {ours.get(name) or known[name][0].lower().replace("_", "-") for name in outside}


PACKAGES = (
    Package(
        "layers/sharding",
        "dynashard",
        "layers/sharding/python/dynashard",
        """
from dynashard import Dynashard, Entity, Key, Shards, connect, new_id, __all__
import dynashard
class User(Entity, name="user.v1.User", key=Key(partition="{tenant_id}", sort="{id}"), shards=Shards(16)):
    tenant_id: str
    id: str = new_id()
[getattr(dynashard, name) for name in __all__]
with Dynashard.local({"DYNAMODB_PORT": "1", "DATA_DIR": "."}) as db:
    db.collection(User)
""",
    ),
    Package(
        "layers/patterns",
        "dynashard_patterns",
        "layers/patterns/python/dynashard_patterns",
        "import dynashard_patterns; [getattr(dynashard_patterns, name) for name in dynashard_patterns.__all__]",
    ),
    Package(
        "layers/serving",
        "dynashard_serving",
        "layers/serving/python/dynashard_serving",
        "import dynashard_serving.operations.items, dynashard_serving.backend, dynashard_serving.idempotency",
    ),
    Package(
        "packages/client",
        "dynashard_client",
        "packages/client/dynashard_client",
        """
import sys
from dynashard_client import Client, EngineUnavailableError, Item, Retries, __all__
class User(Item, path="users"):
    id: str
with Client.rest("http://127.0.0.1:1", token="t", retries=Retries(attempts=1)) as client:
    try:
        client.collection(User).get("ada")
    except EngineUnavailableError:
        pass
assert not {"dynashard", "dynashard_serving", "botocore"} & sys.modules.keys()
""",
    ),
    Package(
        "layers/domain",
        "domain",
        "layers/domain/python/domain",
        "from dynashard_serving.domain import declared; assert 'users' in declared().roots",
    ),
)


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels, by module."""
    folder = tmp_path_factory.mktemp("wheels")
    # Built from copies, because setuptools leaves folders behind whose content would enter the next wheel.
    left = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    places = [
        str(shutil.copytree(ROOT / package.folder, folder / "source" / package.module, ignore=left))
        for package in PACKAGES
    ]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(folder), *places], check=True)  # noqa: S603
    return {
        package.module: next(folder.glob(f"{str(package.project['name']).replace('-', '_')}-*.whl"))
        for package in PACKAGES
    }


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.module)
def test_a_package_declares_what_it_imports_and_nothing_else(package: Package) -> None:
    assert package.declared == package.imported()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.module)
def test_a_wheel_holds_all_modules_and_nothing_else(package: Package, wheels: dict[str, Path]) -> None:
    source = ROOT / package.source
    modules = {path.relative_to(source.parent).as_posix() for path in source.rglob("*.py")}

    with zipfile.ZipFile(wheels[package.module]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert held == modules | {f"{package.module}/py.typed"}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.module)
def test_a_wheel_works_with_those_that_it_declares(package: Package, wheels: dict[str, Path], tmp_path: Path) -> None:
    names = {str(each.project["name"]): each for each in PACKAGES}
    waiting, needed = [package], set[str]()
    while waiting:
        found = waiting.pop()
        needed.add(found.module)
        waiting += [names[name] for name in found.declared & names.keys() if names[name].module not in needed]
    # Without `site` the environment does not put this checkout on the path.
    path = [str(wheels[module]) for module in sorted(needed)] + [sysconfig.get_paths()["purelib"]]
    code = f"import sys; sys.path += {path!r}\n{package.use}"

    done = subprocess.run(  # noqa: S603
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
