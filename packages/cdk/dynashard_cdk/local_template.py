"""Writes the templates that the local stack reads, so that running it needs no CDK (`make template`)."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dynashard_cdk.root import backend_root

OWN: Final = Path(".dynashard", "local")
"""Where a backend has its own, which the local stack prefers to those that it comes with."""
ENVIRONMENT: Final = "local"
"""The environment of the local stack in cdk.json."""
_SUFFIX: Final = ".template.json"
_VERSION: Final = re.compile(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}\b")
_ASSET: Final = re.compile(r"\b[0-9a-f]{64}\b")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the templates of a backend anew; 1 and one line on stderr if they cannot be synthesised."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_cdk.local_template", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help=f"where they go (default {OWN} of the backend)")
    root = backend_root()
    folder: Path = parser.parse_args(arguments).folder or root / OWN
    try:
        texts = templates(root)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines() or ["no message"]
        sys.stderr.write(f"dynashard: The template cannot be synthesised: {said[-1]}\n")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"*{_SUFFIX}"):
        old.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return 0


def templates(root: Path) -> dict[str, str]:
    """Synthesise the environment `local`, and return its templates by file name. Takes seconds.

    They have no hashes of code, so they change only with the infrastructure.

    Raises:
        CalledProcessError: the synthesis failed.
    """
    context = json.loads((root / "cdk.json").read_text()).get("context", {}) | {
        "env": ENVIRONMENT,
        # The functions run from their sources, so nothing needs to be built or copied.
        "assets": "sources",
        "aws:cdk:disable-asset-staging": True,
    }
    with tempfile.TemporaryDirectory() as folder:
        # CDK's own check of the templates takes longer than the synthesis. `make synth` and every deployment run it.
        own = {"CDK_VALIDATION": "false", "CDK_OUTDIR": folder, "CDK_CONTEXT_JSON": json.dumps(context)}
        command = [sys.executable, "app.py"]
        subprocess.run(command, cwd=root, env=os.environ | own, capture_output=True, text=True, check=True)  # noqa: S603
        return without_hashes(Path(folder))


def without_hashes(assembly: Path) -> dict[str, str]:
    """Return the templates of a synthesis by file name, without hashes of code."""
    return {path.name: _without_hashes(path.read_text()) for path in sorted(assembly.glob(f"*{_SUFFIX}"))}


def _without_hashes(template: str) -> str:
    plain = _ASSET.sub("asset", _VERSION.sub(r"\1", template))
    return json.dumps(json.loads(plain), indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(main())
