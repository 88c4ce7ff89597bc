"""The root of the tree, and errors of those who set a backend up."""

from typing import Any, ClassVar


class DynashardError(Exception):
    """Root of the tree.

    Attributes:
        code: what REST and direct invocation answer.
        status: the HTTP status it maps to.
        retryable: whether the same request can succeed later.
        told: the attributes that are its `details`, where they are known.
    """

    code: ClassVar[str] = "dynashard_error"
    status: ClassVar[int] = 500
    retryable: bool = False
    told: ClassVar[tuple[str, ...]] = ()

    @property
    def details(self) -> dict[str, Any]:
        """What a caller may be told beyond code and message; JSON values only."""
        return {name: value for name in self.told if (value := getattr(self, name)) is not None}

    @property
    def passing(self) -> bool:
        """Whether idempotent work, such as the message of a queue, can be done again later."""
        return self.retryable


class DeclarationError(DynashardError):
    """An entity is declared wrongly; raised while its class is created."""

    code = "wrong_declaration"

    def __init__(self, entity: str, reason: str) -> None:
        super().__init__(f"{entity}: {reason}")
        self.entity = entity
        self.reason = reason


class ConfigurationError(DynashardError):
    """A setting is missing or wrong."""

    code = "wrong_configuration"
