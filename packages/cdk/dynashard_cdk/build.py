"""Builds the layers and the functions for a deployment, with packages and bytecode, without Docker.

    build/sharding/python/...         the sharding layer and its packages
    build/patterns/python/...         what is derived from items, or stored out of line
    build/serving/python/...          what every function needs to serve items, with boto3
    build/domain/python/...           the entities, with an index of what is served where
    build/functions/NAME/functions/NAME/...   one function, and what only it needs

Everything is made from the backend, the packages of Dynashard as they are installed, and the hashed locks, so that two
builds of one commit are the same bytes and CDK uploads only what changed. `--target host` builds the same for this
machine's own Python into `build/host`, for the whole-stack test.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynashard_cdk.bundling import DOMAIN, LAYERS, layer_source
from dynashard_cdk.root import backend_root
from dynashard_cdk.settings import SettingsError

LOCKS = Path(__file__).resolve().parent / "locks"
"""The hashed locks that this package comes with. A checkout of Dynashard has them in its own `requirements`."""

LAMBDA_PYTHON = "3.13"

SERVICES = frozenset(
    {
        "cloudwatch", "dynamodb", "dynamodbstreams", "events", "lambda", "scheduler", "secretsmanager", "sqs",
        "ssm", "stepfunctions", "sts",
    }
)  # fmt: skip
"""The services that functions call; the descriptions of all 400 services are nine tenths of botocore's size."""

POWERTOOLS = "aws_lambda_powertools"
SWAGGER_UI = f"{POWERTOOLS}/event_handler/openapi/swagger_ui"
"""The files that the API serves to people; nothing else of Powertools is in its bundle."""
HANDLERS_OF_EVENTS = f"{POWERTOOLS}/event_handler"
"""Half of Powertools: resolvers of HTTP requests, with the Swagger UI, which no function but the API could load."""
FUNCTIONS = "functions"
"""The lock of functions that have none of their own."""
KEPT = {"api": (f"{SWAGGER_UI}/*.min.*",)}
"""What functions keep of that lock's packages; all but the handlers of events, if nothing else is said."""
OURS = ("changes", "commands", "prewarm", "reshard", "writer")
"""The functions that are packages of Dynashard: it is known what they load."""
UNLOADED = tuple(
    f"{POWERTOOLS}/utilities/{name}"
    for name in (
        "auth_alpha", "circuit_breaker", "data_masking", "feature_flags", "idempotency", "kafka", "metadata",
        "parameters", "streaming", "validation",
    )
)  # fmt: skip
"""What none of these loads of Powertools. A function of a backend that has the same lock may load it."""
UNUSED = {
    "serving": (
        *("boto3/examples", "boto3/ec2", "boto3/s3", "boto3/crt.py", "s3transfer/crt.py", "s3transfer/processpool.py"),
        "jsonpatch_cli.py",
    )
}
"""What layers drop: what boto3 adds to S3 and EC2, whose descriptions are not there either; jsonpatch's programs."""

NEVER_USED = (
    *(
        "__pycache__",
        "bin",
        "tests",
        "*-stubs",
        "*.pyi",
        "py.typed",
        "RECORD",
        "INSTALLER",
        "REQUESTED",
        "examples-1.json",
    ),
    # zoneinfo reads the compiled zones alone, not the texts that stand beside them.
    *("tzdata.zi", "*.tab", "leapseconds"),
)
FOR_TESTS = "testing"
"""The folder of our own packages that functions do not import."""


class BuildError(Exception):
    """A package could not be fetched or compiled; the message has the tool's output."""


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to build for: the folder of its assets, and pip's options that choose its wheels."""

    folder: str
    pip: tuple[str, ...]


TARGETS = {
    "lambda": Target(
        "build",
        (
            "--platform=manylinux2014_aarch64",
            "--platform=manylinux_2_28_aarch64",
            "--implementation=cp",
            f"--python-version={LAMBDA_PYTHON}",
        ),
    ),
    "host": Target("build/host", ()),
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One folder that is zipped and uploaded.

    Attributes:
        name: its place below the target's folder.
        content: where the code is in the asset, `python` for a layer.
        sources: the folders and files of its own code, each with its place below `content`.
        requirements: the name of a lock whose packages are installed.
        without: the names of locks whose packages a layer below has already.
        kept: globs of the installed files that are kept; None keeps all of them.
        dropped: folders and modules of the installed packages that the code cannot load.
        runtime_path: where Lambda mounts `content`; it is in stack traces.
    """

    name: str
    content: str
    sources: tuple[tuple[Path, str], ...]
    requirements: str | None = None
    without: tuple[str, ...] = ()
    kept: tuple[str, ...] | None = None
    dropped: tuple[str, ...] = ()
    runtime_path: str = "/opt/python"


def assets_of(root: Path) -> list[Asset]:
    """Return the assets of a backend: the layers, and a function for each folder in `functions` with a `handler.py`."""
    names = sorted(path.parent.name for path in root.glob("functions/*/handler.py"))
    return [*(_layer(root, name) for name in LAYERS), *(_function(root, name) for name in names)]


def _layer(root: Path, name: str) -> Asset:
    source = layer_source(root, name)
    return Asset(
        name,
        "python",
        ((source, source.name),),
        requirements=name if _lock(root, name) else None,
        without=LAYERS[: LAYERS.index(name)],
        dropped=UNUSED.get(name, ()),
    )


def _function(root: Path, name: str) -> Asset:
    folder = root / "functions"
    own = bool(_lock(root, name))
    return Asset(
        name=f"functions/{name}",
        content="",
        sources=tuple(
            (path, f"functions/{path.name}") for path in (folder / "__init__.py", folder / name) if path.exists()
        ),
        requirements=name if own else FUNCTIONS,
        without=LAYERS,
        kept=None if own else KEPT.get(name),
        dropped=() if own or name in KEPT else (HANDLERS_OF_EVENTS, *(UNLOADED if name in OURS else ())),
        runtime_path="/var/task",
    )


def _lock(root: Path, name: str) -> str:
    """Return the lock of an asset, of the backend or of this package; nothing if the asset needs no packages."""
    places = (root / "requirements", LOCKS)
    return next((path.read_text() for folder in places if (path := folder / f"{name}.txt").is_file()), "")


def build(target: Target, destination: Path, root: Path) -> dict[str, int]:
    """Build every asset of a backend, and return its bytes, unzipped. They are replaced when all are complete.

    Raises:
        BuildError: a package cannot be fetched, or the code does not compile.
        SettingsError: a package of Dynashard is not installed.
    """
    assets = assets_of(root)
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=destination) as work:
        folders = {asset.name: _assemble(asset, target, Path(work) / asset.name, root) for asset in assets}
        _compile(target, [(folders[asset.name] / asset.content, asset.runtime_path) for asset in assets], root)
        for asset in assets:
            final = destination / asset.name
            shutil.rmtree(final, ignore_errors=True)
            final.parent.mkdir(parents=True, exist_ok=True)
            folders[asset.name].rename(final)
    return {asset.name: size_of(destination / asset.name) for asset in assets}


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _assemble(asset: Asset, target: Target, folder: Path, root: Path) -> Path:
    content = folder / asset.content
    content.mkdir(parents=True)
    if asset.requirements is not None:
        excluded = frozenset(name for lock in asset.without for name in _names(_lock(root, lock)))
        _install(list(_blocks(_lock(root, asset.requirements), excluded)), target, content)
        _trim(content, asset)
    for source, place in asset.sources:
        _copy(source, content / place)
    if asset.name == DOMAIN:
        (content / DOMAIN / "index.json").write_text(_index(content))
    return folder


def _index(content: Path) -> str:
    """Return the index of a folder's domain, by which a function imports only what a request needs."""
    path = os.pathsep.join([str(content), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return _run([sys.executable, "-m", "dynashard_serving.domain"], variables=variables)


def _install(blocks: Sequence[str], target: Target, content: Path) -> None:
    """Install locked packages, as wheels only, except one that publishes none and is pure Python."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write("".join(blocks))
        lock.flush()
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--require-hashes"]
        # The one package without a wheel is pure Python; it is built with the locked setuptools, not a fetched one.
        wheels = ["--only-binary=:all:", "--no-binary=python-baseconv", "--no-build-isolation", *target.pip]
        where = [f"--target={content}", f"--requirement={lock.name}"]
        _run([sys.executable, "-m", "pip", "install", *options, *wheels, *where])


def _trim(content: Path, asset: Asset) -> None:
    """Remove the installed files that the code of an asset cannot load."""
    for pattern in NEVER_USED:
        for path in list(content.rglob(pattern)):
            _remove(path)
    for name in asset.dropped:
        _remove(content / name)
    for package in ("botocore", "boto3"):
        for path in (content / package / "data").glob("*"):
            if path.is_dir() and path.name not in SERVICES:
                shutil.rmtree(path)
    if asset.kept is not None:
        _keep_only([path for pattern in asset.kept for path in content.glob(pattern)], content)


def _remove(path: Path) -> None:
    # An adopter's lock may lack a package or pin a version without the file, and a removed folder may have held it.
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _keep_only(kept: Iterable[Path], folder: Path) -> None:
    wanted = {each for path in kept for each in (path, *path.parents)}
    # The deepest first, so that a folder is empty when its turn comes.
    for path in sorted(folder.rglob("*"), reverse=True):
        if path not in wanted:
            path.rmdir() if path.is_dir() else path.unlink()


def _copy(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copyfile(source, destination)
    else:
        left_out = shutil.ignore_patterns(*NEVER_USED, FOR_TESTS)
        shutil.copytree(source, destination, ignore=left_out, copy_function=shutil.copyfile)


def _compile(target: Target, folders: Sequence[tuple[Path, str]], root: Path) -> None:
    if target.pip:
        arguments = [text for folder, runtime_path in folders for text in (str(folder), runtime_path)]
        _run(["node", str(Path(__file__).resolve().parent / "compile.mjs"), LAMBDA_PYTHON, *arguments], root)
        return
    for folder, _ in folders:
        _run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash", str(folder)])


def _blocks(lock: str, excluded: frozenset[str] = frozenset()) -> Iterator[str]:
    """Return each requirement of a lock with its hashes, without comments."""
    joined = re.sub(r"\\\n\s*", " ", lock)
    for line in joined.splitlines():
        if line and not line.startswith(("#", " ")) and _name(line) not in excluded:
            yield f"{line}\n"


def _names(lock: str) -> frozenset[str]:
    return frozenset(_name(block) for block in _blocks(lock))


def _name(requirement: str) -> str:
    return re.split(r"[=<>!~;\[ ]", requirement, maxsplit=1)[0].lower()


def _run(command: Sequence[str], cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    environment = {**os.environ, **(variables or {})}
    try:
        done = subprocess.run(  # noqa: S603 -- our own command lines
            command, cwd=cwd, check=True, capture_output=True, text=True, env=environment
        )
    except FileNotFoundError:
        raise BuildError(f"{command[0]} is not installed: run `make setup`") from None
    except subprocess.CalledProcessError as error:
        words = f"{error.stdout}\n{error.stderr}".strip()
        raise BuildError(f"{Path(command[0]).name} failed:\n{words}") from error
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Build for `--target` and print the sizes; 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_cdk.build", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=sorted(TARGETS), default="lambda")
    target = TARGETS[parser.parse_args(arguments).target]
    root = backend_root()
    try:
        sizes = build(target, root / target.folder, root)
    except (BuildError, SettingsError) as error:
        sys.stderr.write(f"make build: {error}\n")
        return 1
    for name, size in sizes.items():
        sys.stdout.write(f"{target.folder}/{name:<18} {size / 1e6:6.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
