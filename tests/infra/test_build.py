"""The output of `make build` is complete, for the right machine, and reproducible."""

import hashlib
import json
import re
import struct
import subprocess
import sys
from importlib.util import MAGIC_NUMBER, find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest
from filelock import FileLock

from dynashard_cdk.build import (
    HANDLERS_OF_EVENTS,
    LAMBDA_PYTHON,
    SERVICES,
    TARGETS,
    UNUSED,
    BuildError,
    Target,
    assets_of,
    build,
    size_of,
)
from dynashard_cdk.bundling import LAYERS
from dynashard_serving.domain import INDEX, declared
from tests.depth import profile
from tests.infra.templates import ROOT
from tests.shared import made_once

pytestmark = pytest.mark.infra

DEEP = profile() == "deep"
UNCHECKED_HASH = 0b01
AARCH64 = 183
TAG, MAGIC = (
    (f"cpython-{LAMBDA_PYTHON.replace('.', '')}", bytes.fromhex("f30d0d0a"))
    if DEEP
    else (sys.implementation.cache_tag, MAGIC_NUMBER)
)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assets for Lambda; by default those for this machine, which `make test` has built by the same code."""
    if DEEP:
        return made_once(tmp_path_factory, "build", lambda folder: build(TARGETS["lambda"], folder, ROOT))
    # The tests of a deployment build it too, in other workers: see tests/e2e/deployment.py.
    with FileLock(ROOT / "build" / ".e2e.lock"):
        subprocess.run(["make", "--silent", "build/host/.done"], cwd=ROOT, check=True)  # noqa: S607 - on the user's PATH
    return ROOT / TARGETS["host"].folder


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.deep
def test_two_builds_are_the_same_bytes(built: Path, tmp_path: Path) -> None:
    build(TARGETS["lambda"], tmp_path, ROOT)

    assert contents(tmp_path) == contents(built)


def test_every_module_has_bytecode_that_is_loaded_without_checking_the_source(built: Path) -> None:
    sources = {path for path in built.rglob("*.py") if "__pycache__" not in path.parts}

    missing = []
    for source in sources:
        compiled = source.parent / "__pycache__" / f"{source.stem}.{TAG}.pyc"
        header = compiled.read_bytes()[:8] if compiled.exists() else b"\0" * 8
        if header[:4] != MAGIC or struct.unpack("<I", header[4:])[0] != UNCHECKED_HASH:
            missing.append(source)

    assert len(sources) > 200
    assert missing == []


@pytest.mark.deep
def test_compiled_modules_are_for_graviton_and_the_python_of_lambda(built: Path) -> None:
    libraries = list(built.rglob("*.so"))

    machines = {struct.unpack_from("<H", path.read_bytes(), 18)[0] for path in libraries}

    assert {path.name.split(".")[0] for path in libraries} >= {"orjson", "_pydantic_core", "_xxhash"}
    assert machines == {AARCH64}
    assert all("cpython-313-aarch64" in path.name or "abi3" in path.name for path in libraries)


def test_the_layer_and_the_functions_contain_what_they_need(built: Path) -> None:
    layer = {path.name for path in (built / "sharding/python").iterdir()}
    api = {path.name for path in (built / "functions/api").iterdir()}

    assert layer >= {"dynashard", "botocore", "pydantic", "orjson", "xxhash", "itsdangerous", "ksuid", "baseconv.py"}
    assert (built / "domain/python/domain/samples/users.py").exists()
    assert {path.name for path in (built / "serving/python").iterdir()} >= {"dynashard_serving", "boto3"}
    assert api == {"functions", "aws_lambda_powertools"}
    assert layer & {path.name for path in (built / "functions/writer").iterdir()} <= {"__pycache__"}
    assert (built / "functions/prewarm/functions/prewarm/handler.py").exists()
    assert not (built / "functions/api/functions/prewarm").exists()


def test_the_domain_has_an_index_of_what_is_served_where(built: Path) -> None:
    index = json.loads((built / "domain/python/domain" / INDEX).read_text())

    assert index["roots"]["users"] == ["User", ["domain.samples.users"]]
    assert index["roots"]["pings"] == ["Ping", ["domain.samples.pings", "domain.samples.plays"]]
    assert index["roots"].keys() == declared().roots.keys()


def test_only_models_of_called_services_are_bundled(built: Path) -> None:
    described = {path.name for path in (built / "sharding/python/botocore/data").iterdir() if path.is_dir()}

    assert described == SERVICES


def test_every_service_that_a_function_calls_is_bundled() -> None:
    code = "".join(path.read_text("utf-8") for path in (ROOT / "layers").rglob("*.py"))

    called = set(re.findall(r"""\b(?:sdk_client|client)\(\s*"(\w+)\"""", code))
    called |= set(re.findall(r"""\bpartial\((?:sdk_client|client), "(\w+)\"""", code))

    # The library describes stacks for scripts; no function does.
    assert called - {"cloudformation"} == SERVICES - {"sts"}


LOADING = """
import importlib, pkgutil, sys

room, *folders = sys.argv[1:]
sys.path[:0] = folders
import domain, dynashard.growth, dynashard_serving.operations
import functions
mine = importlib.import_module(f"dynashard_serving.{room}")
packages = [mine, dynashard.growth, dynashard_serving.operations]
for package in packages:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
handler = importlib.import_module(f"functions.{room}.handler")
print(*(name for name in ("aws_lambda_powertools", "boto3") if name in sys.modules))
if room == "api":
    from dynashard_serving.api.openapi import page
    print(*(len(page.asset(name, {"headers": {}}).body) > 100_000 for name in page.ASSETS))
"""
"""Imports all modules of a function from its bundle and its layers, and from nothing else."""


@pytest.mark.parametrize("name", ["api", "changes", "commands", "prewarm", "reshard", "writer"])
def test_a_function_loads_all_of_its_modules_from_its_bundle(built: Path, name: str, tmp_path: Path) -> None:
    if DEEP:
        pytest.skip("the assets are for Lambda's machine")
    layers = [str(built / layer / "python") for layer in LAYERS]
    command = [sys.executable, "-I", "-S", "-c", LOADING, name, str(built / "functions" / name), *layers]

    done = subprocess.run(  # noqa: S603 - our own interpreter
        command, cwd=tmp_path, env={"AWS_REGION": "eu-west-1"}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == (["", "True True"] if name == "api" else ["aws_lambda_powertools"])


OPENING = """
import sys

from boto3.session import Session

for name in sys.argv[1:]:
    print(Session().client(name, region_name="eu-west-1").meta.service_model.service_name)
"""


def test_a_client_of_every_bundled_service_opens_from_the_layers_alone(built: Path, tmp_path: Path) -> None:
    if DEEP:
        pytest.skip("the assets are for Lambda's machine")
    path = [str(built / layer / "python") for layer in LAYERS]
    program = f"import sys; sys.path[:0] = {path}{OPENING}"
    command = [sys.executable, "-I", "-S", "-c", program, *sorted(SERVICES)]

    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted(SERVICES)


def test_every_time_zone_is_loaded_from_the_layer_without_those_of_the_machine(built: Path) -> None:
    program = (
        "import sys, zoneinfo; sys.path.insert(0, sys.argv[1]); zoneinfo.reset_tzpath([]); "
        "print(sum(zoneinfo.ZoneInfo(name).key == name for name in zoneinfo.available_timezones()))"
    )
    command = [sys.executable, "-I", "-S", "-c", program, str(built / "serving" / "python")]

    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


def test_no_unused_file_is_bundled(built: Path) -> None:
    names = {path.name for path in built.rglob("*")}

    assert names & {"tests", "bin", "RECORD", "examples-1.json", "py.typed", "tzdata.zi"} == set()
    assert [name for name in names if name.endswith((".pyi", "-stubs"))] == []


def test_a_function_of_an_adopter_may_load_more_of_powertools(tmp_path: Path) -> None:
    for name in ("mine", "writer"):
        (tmp_path / "functions" / name).mkdir(parents=True)
        (tmp_path / "functions" / name / "handler.py").touch()

    mine, writer = assets_of(tmp_path)[-2:]

    assert mine.dropped == (HANDLERS_OF_EVENTS,)
    assert set(writer.dropped) > {HANDLERS_OF_EVENTS}


@pytest.mark.parametrize("name", ["changes", "commands", "prewarm", "reshard", "writer"])
def test_a_function_has_of_powertools_what_functions_load(built: Path, name: str) -> None:
    utilities = built / "functions" / name / "aws_lambda_powertools/utilities"

    assert {path.name for path in utilities.iterdir() if path.is_dir() and path.name != "__pycache__"} == {
        "batch", "data_classes", "jmespath_utils", "parser", "typing",
    }  # fmt: skip


def test_what_layers_drop_is_what_the_locked_packages_have() -> None:
    boto3 = find_spec("boto3")
    assert boto3 is not None
    assert boto3.origin is not None
    installed = Path(boto3.origin).parents[1]

    assert {name for names in UNUSED.values() for name in names if not (installed / name).exists()} == set()


LIBRARY = {
    "own_library/__init__.py": "",
    "own_library/tests/__init__.py": "",
    "own_library/tests/tests/test_library.py": "",
}
"""The modules of a package of an adopter."""


@pytest.fixture
def adopters_lock(tmp_path: Path) -> str:
    """A lock with one small package that is found nowhere but on this machine, and none of ours."""
    wheel = tmp_path / "own_library-1-py3-none-any.whl"
    information = {
        "own_library-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: own-library\nVersion: 1\n",
        "own_library-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nTag: py3-none-any\n",
    }
    with ZipFile(wheel, "w") as archive:
        for name, text in {**LIBRARY, **information, "own_library-1.dist-info/RECORD": ""}.items():
            archive.writestr(name, text)
    return f"own-library @ {wheel.as_uri()} \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def test_a_backend_with_locks_that_lack_what_ours_drop_is_built(tmp_path: Path, adopters_lock: str) -> None:
    root = tmp_path / "backend"
    (root / "requirements").mkdir(parents=True)
    (root / "layers/domain/python/domain").mkdir(parents=True)
    (root / "layers/domain/python/domain/__init__.py").write_text('"""Nothing is served."""\n')
    for layer in ("sharding", "serving"):
        (root / "requirements" / f"{layer}.txt").write_text(adopters_lock if layer == "serving" else "")

    build(Target(folder="", pip=()), tmp_path / "built", root)

    content = tmp_path / "built/serving/python"
    assert sorted(path.name for path in content.glob("own_library/*")) == ["__init__.py", "__pycache__"]
    assert (content / "dynashard_serving").is_dir()


def test_the_assets_stay_small(built: Path) -> None:
    sizes = {asset.name: size_of(built / asset.name) for asset in assets_of(ROOT)}

    assert sizes["sharding"] < 25_000_000
    assert sizes["serving"] < 4_000_000
    assert sizes["functions/api"] < 2_000_000
    assert (
        max(sizes[f"functions/{name}"] for name in ("changes", "commands", "prewarm", "reshard", "writer")) < 4_000_000
    )


def test_a_build_that_fails_leaves_the_last_one_in_place(tmp_path: Path) -> None:
    for asset in assets_of(ROOT):
        (tmp_path / asset.name).mkdir(parents=True)
        (tmp_path / asset.name / "last").write_text(asset.name)
    before = contents(tmp_path)
    impossible = Target(folder="", pip=("--platform=no_such_machine", "--python-version=3.13"))

    with pytest.raises(BuildError, match=r"^python\S* failed:"):
        build(impossible, tmp_path, ROOT)

    assert contents(tmp_path) == before
    assert not list(tmp_path.glob(".building-*"))
