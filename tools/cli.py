"""The entry of the command line: runs a command, and ends it with one line if it cannot be done."""

import sys
from importlib import import_module

from dynashard.errors import DeclarationError, DynashardError
from tools.failure import FAILED, CommandError


def main() -> None:
    """Run a command; what goes wrong is one line, and the exit status is 0 only on success."""
    try:
        # Commands know the domain's entities: a wrong declaration shows itself here.
        app = import_module("tools.commands").app
        app(prog_name="dynashard")
    except CommandError as error:
        _end(str(error), error.status)
    except DeclarationError as error:
        _end(f"the domain cannot be used: {error} ({error.code})")
    except DynashardError as error:
        _end(f"{error} ({error.code})")
    except OSError as error:
        # The commands tell of the files they are given; what is left is the machine: a full disk, say.
        where = "" if error.filename is None else f"{error.filename}: "
        _end(f"{where}{error.strerror or error}")


def _end(message: str, status: int = FAILED) -> None:
    line = " ".join(message.split("\n"))
    print(f"error: {line}", file=sys.stderr)
    sys.exit(status)
