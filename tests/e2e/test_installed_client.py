"""The TypeScript client as others have it: packed by npm, and installed from the tarball into a folder elsewhere."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.e2e.local_process import LocalProcess
from tests.typescript import BIN, CLIENT, ROOT, STRICTLY, run

pytestmark = pytest.mark.e2e

USE = Path(__file__).parent / "installed_use.ts"
DEPENDENCIES = ("openapi-fetch", "openapi-typescript-helpers")
"""What the client needs, and what that needs: taken from this checkout, because tests ask no registry."""


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client, packed from a copy, so that the checkout stays as it is."""
    folder = tmp_path_factory.mktemp("packing")
    shutil.copytree(CLIENT, folder / "client", ignore=shutil.ignore_patterns("dist", "node_modules"))
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    run("npm", "pack", "--offline", "--pack-destination", folder, cwd=folder / "client")
    [packed] = folder.glob("*.tgz")
    return packed


def test_the_tarball_holds_what_a_program_needs_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as packed:
        names = {name.removeprefix("package/") for name in packed.getnames()}

    modules = {path.stem for path in (CLIENT / "src").glob("*.ts")}
    compiled = {f"dist/{module}{ending}" for module in modules for ending in (".js", ".d.ts")}
    assert names == {"package.json", "README.md", *compiled}


def test_the_name_of_the_package_leads_to_its_module_and_its_types(tarball: Path, tmp_path: Path) -> None:
    modules = tmp_path / "node_modules"
    modules.mkdir()
    with tarfile.open(tarball) as packed:
        packed.extractall(tmp_path, filter="data")
    place = (tmp_path / "package").rename(modules / "dynashard-client")
    for name in json.loads((place / "package.json").read_text())["dependencies"]:
        (modules / name).symlink_to(ROOT / "node_modules" / name)
    resolve = 'console.log(import.meta.resolve("dynashard-client"))'
    imports = 'const client = await import("dynashard-client"); console.log(typeof client.createClient)'

    types = run("node", "--conditions=types", "--input-type=module", "--eval", resolve, cwd=tmp_path)
    created = run("node", "--input-type=module", "--eval", imports, cwd=tmp_path)

    assert types.strip() == (place / "dist" / "index.d.ts").as_uri()
    assert created.strip() == "function"


@pytest.mark.deep
def test_a_program_that_installs_the_tarball_type_checks_and_runs(
    tarball: Path, local_stack: LocalProcess, tmp_path: Path
) -> None:
    token = local_stack.client(None).post("/local/tokens", json={"tenant_id": "installed"}).json()["token"]
    needed = {name: f"file:{ROOT / 'node_modules' / name}" for name in DEPENDENCIES}
    manifest = {"name": "outside", "private": True, "type": "module"}
    (tmp_path / "package.json").write_text(
        json.dumps(manifest | {"dependencies": {"dynashard-client": f"file:{tarball}", **needed}})
    )
    shutil.copy(USE, tmp_path / "use.ts")

    run("npm", "install", "--offline", "--install-links", "--no-audit", "--no-fund", "--ignore-scripts", cwd=tmp_path)
    exactly = ("--exactOptionalPropertyTypes", "--lib", "ES2022,DOM,DOM.Iterable")
    run(BIN / "tsc", *STRICTLY, *exactly, "use.ts", cwd=tmp_path)
    printed = json.loads(run("node", "use.js", local_stack.url, token, cwd=tmp_path))

    assert not (tmp_path / "node_modules" / "dynashard-client").is_symlink()
    assert printed == {
        "created": "Ada",
        "patched": "engines",
        "listed": [True],
        "department": "engines",
        "refused": "not_found",
    }
