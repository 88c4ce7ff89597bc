"""The domain's entities as the command line names them."""

from domain import ENTITIES, Exposed
from dynashard import definition
from tools.failure import CommandError


def exposed(name: str) -> Exposed:
    """The entity of a name: its outside one, `users`, or its own, `user.v1.User`.

    Raises:
        CommandError: there is none; names those there are.
    """
    for each in ENTITIES:
        if name in (each.path, definition(each.entity).name):
            return each
    raise CommandError(f"no entity is called {name!r}; there are {', '.join(each.path for each in ENTITIES)}")
