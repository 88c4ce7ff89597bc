"""`app.py` reports errors in one line, and needs nothing but the checkout."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dynashard_cdk.settings import SettingsError
from tests.infra.conftest import Synthesised
from tests.infra.templates import ROOT, context, synthesise

pytestmark = pytest.mark.infra

SIGN_IN_ARGUMENTS = {"issuer": "https://login.example.com/", "audience": "api", "tenant_claim": "tenant_id"}

OFFLINE_PYTHON = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        raise RuntimeError(f"not hermetic: {event}")
    if event == "subprocess.Popen" and "node" not in str(arguments[0]):
        raise RuntimeError(f"not hermetic: {arguments[0]}")

sys.addaudithook(refuse)
"""


def run_app(
    outdir: Path, stored: dict[str, Any], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run app.py as the command line does."""
    variables = {
        **(environment or os.environ),
        "CDK_OUTDIR": str(outdir),
        "CDK_CONTEXT_JSON": json.dumps(stored),
    }
    return subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )


def as_shipped(env: str, **changes: Any) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return {**stored, "env": env, "assets": "sources", "aws:cdk:disable-asset-staging": True, **changes}


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.template.json"))}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (as_shipped("prod"), "environments.prod.auth: nothing is public"),
        (context("dev", colour="blue"), "environments.dev.colour: there is no such setting"),
    ],
    ids=["unsigned", "wrong key"],
)
def test_an_error_is_one_line_without_a_traceback(tmp_path: Path, stored: dict[str, Any], message: str) -> None:
    done = run_app(tmp_path, stored)

    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("dynashard: ")
    assert message in line
    assert digests(tmp_path) == {}


@pytest.mark.deep
def test_a_sign_in_on_the_command_line_is_enough_for_a_shipped_environment(tmp_path: Path) -> None:
    validating = {name: value for name, value in os.environ.items() if name != "CDK_VALIDATION"}

    done = run_app(tmp_path, as_shipped("prod", **SIGN_IN_ARGUMENTS), validating)

    assert done.returncode == 0, done.stderr
    assert sorted(digests(tmp_path)) == [
        f"Dynashard-prod-{stack}.template.json"
        for stack in ("Api", "Changes", "Commands", "Data", "Monitoring", "Reshard", "Writer")
    ]


@pytest.mark.deep
def test_without_cdk_the_settings_are_those_of_the_file(tmp_path: Path) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("CDK_")}
    backend = tmp_path / "backend"
    backend.mkdir()
    shutil.copy(ROOT / "app.py", backend)
    shutil.copytree(ROOT / "stacks", backend / "stacks")
    (backend / "cdk.json").write_text('{"context": {"environments": {"dev": {"purpose": "development"}}}}')

    done = subprocess.run(  # noqa: S603
        [sys.executable, backend / "app.py"], cwd=tmp_path, env=outside, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "environments.dev.auth: nothing is public" in done.stderr


def test_an_interpreter_without_packages_hands_over_to_the_one_of_make_setup(tmp_path: Path) -> None:
    environment = tmp_path / ".venv/bin"
    environment.mkdir(parents=True)
    (environment / "python").write_text('#!/bin/sh\necho "handed over: $*"\n')
    (environment / "python").chmod(0o755)
    shutil.copy(ROOT / "app.py", tmp_path / "app.py")

    done = subprocess.run(
        [sys.executable, "-S", "app.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env={}
    )

    assert done.stdout == "handed over: app.py\n", done.stderr


def test_an_interpreter_without_packages_reports_the_remedy(tmp_path: Path) -> None:
    shutil.copy(ROOT / "app.py", tmp_path / "app.py")

    done = subprocess.run(
        [sys.executable, "-S", "app.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env={}
    )

    assert done.returncode == 1
    assert done.stderr.startswith("dynashard: aws_cdk is not installed: run `make setup`")


def test_a_command_that_needs_no_code_builds_nothing(tmp_path: Path) -> None:
    stored = context("dev", account="111122223333") | {"assets": "", "aws:cdk:bundling-stacks": []}

    assert synthesise(stored, tmp_path).exists()


@pytest.mark.deep
def test_synthesis_needs_no_network_no_git_and_no_clock(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node is not None
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "node").symlink_to(node)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(OFFLINE_PYTHON)
    offline = {
        "PATH": str(programs),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(hooks),
        "NODE_OPTIONS": f"--require {Path(__file__).with_name('offline.cjs')}",
        "TZ": "Pacific/Kiritimati",
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": os.environ["JSII_RUNTIME_PACKAGE_CACHE_ROOT"],
    }

    first = run_app(tmp_path / "first", as_shipped("local"))
    second = run_app(tmp_path / "second", as_shipped("local"), offline)

    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert digests(tmp_path / "first") == digests(tmp_path / "second") != {}


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (as_shipped("prod"), "environments.prod.auth: nothing is public"),
        (as_shipped("stage"), "environments.stage does not exist"),
        (context("dev") | {"assets": "build/nowhere"}, "run `make build` first"),
        (context("dev") | {"issuer": 7}, "-c issuer=... must be text"),
    ],
    ids=["unsigned", "unknown", "not built", "wrong flag"],
)
def test_a_wrong_context_is_refused_before_anything_is_written(
    tmp_path: Path, stored: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        synthesise(stored, tmp_path / "out")

    assert digests(tmp_path / "out") == {}


@pytest.mark.parametrize("env", ["local", "dev"])
def test_templates_for_this_machine_are_bound_to_an_account_that_does_not_exist(
    synthesised: Synthesised, env: str
) -> None:
    assert environments_in(synthesised(env, None).folder) == {"aws://000000000000/unknown-region"}


def test_templates_of_built_code_are_bound_to_the_account_of_the_settings(tmp_path: Path) -> None:
    built = tmp_path / "build"
    functions = [f"functions/{name}" for name in ("api", "changes", "commands", "reshard", "writer")]
    for name in ("sharding", "patterns", "serving", "domain", *functions):
        (built / name).mkdir(parents=True)
        (built / name / "code.py").write_text("")

    folder = synthesise(context("dev", account="111122223333") | {"assets": str(built)}, tmp_path / "out")

    assert environments_in(folder) == {"aws://111122223333/unknown-region"}


def environments_in(assembly: Path) -> set[str]:
    """Return the accounts and Regions that the stacks of a synthesis go to."""
    manifest = json.loads((assembly / "manifest.json").read_text())
    return {
        artifact["environment"]
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    }
