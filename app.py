"""Entry of the infrastructure: `cdk` runs this file. It needs no network, no git and no clock."""

import sys

from aws_cdk import App

from stacks.backend import add_backend, settings_of
from stacks.settings import SettingsError


def main() -> int:
    """Synthesise the environment named by the context; 1 and one line on stderr if its settings are wrong."""
    app = App()
    try:
        add_backend(app, settings_of(app))
    except SettingsError as error:
        sys.stderr.write(f"dynashard: {error}\n")
        return 1
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
