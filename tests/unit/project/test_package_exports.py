"""What an import of a package loads, and the documentation of its public names."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import dynashard
import dynashard_patterns
from tests.unit.project.rooms import PACKAGES, PLACES, room

pytestmark = pytest.mark.unit


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
    assert rooms == {
        "codec",
        "entity",
        "errors",
        "keys",
        "model_schema",
        "cures",
        "placement",
        "record",
        "schema",
    }


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


def modules_of(package: str) -> list[ModuleType]:
    names = [package, *(each.name for each in pkgutil.walk_packages([str(PLACES[package])], f"{package}."))]
    return [importlib.import_module(name) for name in names]


def undocumented(module: ModuleType) -> list[str]:
    """Return the public parts of a module without a docstring."""
    found = [] if module.__doc__ else [module.__name__]
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        found += [] if value.__doc__ else [name]
        for member, inner in vars(value).items() if inspect.isclass(value) else ():
            function = inner.fget if isinstance(inner, property) else getattr(inner, "__func__", inner)
            if not member.startswith("_") and inspect.isfunction(function) and not function.__doc__:
                found.append(f"{name}.{member}")
    return found


@pytest.mark.parametrize("package", [dynashard, dynashard_patterns])
def test_every_public_name_of_a_package_is_documented(package: ModuleType) -> None:
    for name in package.__all__:
        value = getattr(package, name)

        assert inspect.getdoc(value), name
        assert value.__doc__, name


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_part_of_a_module_is_documented(package: str) -> None:
    assert {each.__name__: found for each in modules_of(package) if (found := undocumented(each))} == {}
