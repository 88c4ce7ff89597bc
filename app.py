"""Entry of the infrastructure: `cdk` runs this file, and so can you. It needs no network, no git and no clock."""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv/bin/python"
"""What `make setup` installs. Another environment can be active instead: `pip install -r requirements.txt`."""

NODE = ROOT / ".venv-node/bin"
"""What `make setup` installs if there is no supported Node."""
if NODE.is_dir():
    os.environ["PATH"] = f"{NODE}{os.pathsep}{os.environ.get('PATH', '')}"
# The synthesiser warns about a Node out of support over a dozen lines, which bury the one that matters.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

try:
    from aws_cdk import App
except ImportError:
    if not ENVIRONMENT.exists() or Path(sys.executable) == ENVIRONMENT:
        sys.stderr.write("dynashard: aws_cdk is not installed: run `make setup`, or activate your own environment\n")
        sys.exit(1)
    os.execv(ENVIRONMENT, [str(ENVIRONMENT), *sys.argv])  # noqa: S606 - this checkout's own interpreter

from dynashard_cdk.settings import SettingsError
from stacks.backend import add_backend


def main() -> int:
    """Synthesise the environment named by the context; 1 and one line on stderr if its settings are wrong."""
    # cdk passes the context of cdk.json in a variable. Without cdk the file itself is read.
    from_cdk = "CDK_CONTEXT_JSON" in os.environ
    app = App(context=None if from_cdk else json.loads((ROOT / "cdk.json").read_text())["context"])
    try:
        add_backend(app, ROOT)
    except SettingsError as error:
        sys.stderr.write(f"dynashard: {error}\n")
        return 1
    try:
        app.synth()
    except RuntimeError as error:
        # The checks have printed what they found; a trace through the synthesiser would only bury it.
        if "ValidationFailed" not in str(error):
            raise
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
