"""The entry point of the command line."""

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec

from dynashard.errors import DeclarationError, DynashardError
from dynashard_local.root import backend_root, importable
from dynashard_tools.app import VARIABLE
from dynashard_tools.failure import FAILED, INTERRUPTED, CommandError
from dynashard_tools.interrupts import ends_at_once, not_lost


def main() -> None:
    """Run a command. An error is printed as one line; the exit status is 0 only on success."""
    _open_closed_streams()
    try:
        with not_lost():
            importable(backend_root())
            with ends_at_once():
                commands = _commands()
            commands(prog_name="dynashard")
    except CommandError as error:
        _end(str(error), error.status)
    except DeclarationError as error:
        _end(f"the domain cannot be used: {error} ({error.code})")
    except DynashardError as error:
        _end(f"{error} ({error.code})")
    except OSError as error:
        # Commands report errors of the files they are given; other errors are the machine's, such as a full disk.
        where = "" if error.filename is None else f"{error.filename}: "
        _end(f"{where}{error.strerror or error}")
    except KeyboardInterrupt:
        # Commands that have begun say what they have done.
        _end("interrupted; nothing was done", INTERRUPTED)


def _open_closed_streams() -> None:
    """Let what a shell has closed (`<&-`, `>&-`) be empty: Python has None there, and files would get their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end


def _commands() -> Callable[..., object]:
    """Return the commands of this place: of a program, of a backend, or of neither.

    A command that is called imports the entities, and raises what is wrong with a declaration.
    """
    if os.environ.get(VARIABLE):
        from dynashard_tools import own  # noqa: PLC0415 - each place has its own

        return own.app
    if find_spec("domain"):
        from dynashard_tools import commands  # noqa: PLC0415

        return commands.app
    from dynashard_tools import outside  # noqa: PLC0415

    return outside.app


def _end(message: str, status: int = FAILED) -> None:
    line = " ".join(message.split("\n"))
    print(f"error: {line}", file=sys.stderr)
    sys.exit(status)
