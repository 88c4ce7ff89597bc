"""What callers may call the entities whose events they select.

`python -m dynashard_local.bus.entity_names` prints these names as the code is now, which a process that has run for a
while does not know.
"""

import json
import os
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from typing import Final

from dynashard.cures import hint
from dynashard.entity import definition
from dynashard_local.root import backend_root, environment_for
from dynashard_serving.domain import declared

MOST_SECONDS: Final = 30
"""How long the code as it is now may take to be imported."""


def entity_names() -> dict[str, str]:
    """Return the full names of the entities of this process, by path and by full name."""
    named = [(each.path, definition(each.entity).name) for each in declared().entities]
    return {called: name for path, name in named for called in (path, name)}


def full_name(called: str) -> str:
    """Return the full name of an entity that is called so.

    If this process has none, another one reads the code as it is now, within about two seconds.

    Raises:
        LookupError: there is none; the message has the nearest name and all others.
    """
    names = entity_names()
    if called not in names:
        names = _present() or names
    if called not in names:
        meant = hint(called, names) or "."
        raise LookupError(f"No entity is called {called}{meant} There are: {', '.join(sorted(names))}.")
    return names[called]


def _present() -> dict[str, str]:
    """Return the names as the code is now; none if it cannot be imported in time."""
    root = backend_root()
    with suppress(subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-m", __name__],
            cwd=root,
            env={**os.environ, **environment_for(root)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=MOST_SECONDS,
        )
        found: dict[str, str] = json.loads(done.stdout)
        return found
    return {}


if __name__ == "__main__":
    # The domain may print while it is imported.
    with redirect_stdout(sys.stderr):
        present = entity_names()
    sys.stdout.write(json.dumps(present))
