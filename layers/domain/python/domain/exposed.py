"""How an entity is named outside: plain data for REST, direct invocation and the command line."""

from dataclasses import dataclass

from dynashard import Entity


@dataclass(frozen=True, slots=True)
class Exposed:
    """An entity and its outside name.

    Attributes:
        entity: the declared entity.
        path: its REST path below `/v1` and its name on the command line, such as `users`.
        filters: fields by which a listing may be filtered. A filter is applied after reading, so it saves
            answers, not read units; a field that many listings filter by deserves an index.
    """

    entity: type[Entity]
    path: str
    filters: tuple[str, ...] = ()
