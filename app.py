"""Entry of the infrastructure: `cdk` runs this file. It needs no network, no git and no clock."""

import sys

from aws_cdk import App

from stacks.backend import add_backend
from stacks.settings import SettingsError


def main() -> int:
    """Synthesise the environment named by the context; 1 and one line on stderr if its settings are wrong."""
    app = App()
    try:
        add_backend(app)
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
