"""The entities of this backend: declare one in a module of its own, and name it here."""

from typing import Final

from domain.exposed import Exposed
from domain.users import User, UserStatus

ENTITIES: Final = (Exposed(User, path="users", filters=("department", "manager_id", "status")),)

__all__ = ["ENTITIES", "Exposed", "User", "UserStatus"]
