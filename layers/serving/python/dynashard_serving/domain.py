"""The domain of this backend: what the package `domain` declares, found by itself.

Where the bundle holds an index, a path leads to the modules that declare what is served there, and only those are
imported. Without one, as in a checkout, all modules of the domain are imported at first use.

`python -m dynashard_serving.domain` prints the index.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dynashard.entity import Entity
from dynashard.errors import ConfigurationError
from dynashard_serving.access import Access
from dynashard_serving.declare import Exposed, Root, exposure_of, served_by

if TYPE_CHECKING:
    from dynashard_serving.discovery import Declarations

PACKAGE: Final = "domain"
"""The import name of the domain: the only thing that this package knows of it."""
INDEX: Final = "index.json"
"""The index of a bundle, in the folder of the domain."""


class Domain:
    """What is served, by path, and everything that is declared. Both are loaded when they are asked for.

    Attributes:
        roots: what loads what is served at a path, by its first segment below `/v1`.
    """

    def __init__(
        self,
        roots: Mapping[str, Callable[[], Root]],
        load: "Callable[[], Declarations]",
        exposed: Callable[[type[Entity]], Exposed | None] = exposure_of,
    ) -> None:
        self.roots = roots
        self._load = load
        self._exposed = exposed

    def access_of(self, model: type[Entity]) -> Access | None:
        """Return who may do what with an entity; None for every caller of the tenant. Loads no other entity."""
        found = self._exposed(model)
        return None if found is None else found.access

    @cached_property
    def declarations(self) -> "Declarations":
        """Everything that is declared."""
        return self._load()

    @property
    def entities(self) -> tuple[Exposed, ...]:
        """Every entity, with how it is served."""
        return self.declarations.entities

    @property
    def models(self) -> Sequence[type[Entity]]:
        """The class of every entity; nothing is loaded before the sequence is used."""
        return _Models(self)


class _Models(Sequence[type[Entity]]):
    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def __getitem__(self, number: Any) -> Any:
        return [each.entity for each in self._domain.entities][number]

    def __len__(self) -> int:
        return len(self._domain.entities)


@cache
def declared() -> Domain:
    """Return the domain of this process.

    Raises:
        ConfigurationError: a path cannot be served, or a name is used twice. An index was checked when it was made.
        DeclarationError: a declaration is wrong.
    """
    package = import_module(PACKAGE)
    if package.__file__ is not None:
        index = Path(package.__file__).with_name(INDEX)
        try:
            text = index.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            pass  # Of a checkout, or of a wheel on the path.
        else:
            return _indexed(text)
    from dynashard_serving.discovery import found_in, module_names  # noqa: PLC0415 - it loads all patterns

    return domain_of(*(each.value for each in found_in(module_names(PACKAGE))))


def domain_of(*values: Any) -> Domain:
    """Return a domain of declarations: entities or their `Exposed`, and values such as `FamilyListing` or `Edges`.

    Raises:
        ConfigurationError: a path cannot be served, or a name or a path is used twice.
    """
    from dynashard_serving.discovery import declarations_of  # noqa: PLC0415 - it loads all patterns

    declarations = declarations_of(values)

    def root(served: Root) -> Callable[[], Root]:
        return lambda: served

    exposed = {each.entity: each for each in declarations.entities}
    return Domain({path: root(served) for path, served in declarations.paths}, lambda: declarations, exposed.get)


def _found(name: str, modules: Sequence[str]) -> Root:
    """Return what is served by a name of the first module. The others add to the rules of its items."""
    first, *_ = [import_module(module) for module in modules]
    found = served_by(getattr(first, name, None))
    if found is None:
        raise ConfigurationError(f"the index names {modules[0]}.{name}, which is not served: build the bundle again")
    return found


def _indexed(text: bytes) -> Domain:
    index = json.loads(text)
    roots = {path: partial(_found, *place) for path, place in index["roots"].items()}

    def load() -> "Declarations":
        from dynashard_serving.discovery import declarations_of, found_in  # noqa: PLC0415 - it loads all patterns

        return declarations_of(each.value for each in found_in(index["modules"]))

    return Domain(roots, load)


if __name__ == "__main__":
    import sys

    from dynashard_serving.discovery import index_of, module_names

    sys.stdout.write(json.dumps(index_of(module_names(PACKAGE)), indent=1) + "\n")
