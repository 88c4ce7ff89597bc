"""The domain of a service whose table was written without shards. It goes before the shipped one on the path.

What it does not have itself is taken from there.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)

from domain.exposed import Exposed
from domain.users import User

ENTITIES = (Exposed(User, path="users"),)

__all__ = ["ENTITIES", "Exposed", "User"]
