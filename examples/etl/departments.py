"""A map for `dynashard etl users abc examples/etl/departments.py`: departments get their new names."""

from collections.abc import Mapping
from typing import Any

from domain.samples.users import User

RENAMED = {"eng": "engineering", "hr": "people", "operations": "platform", "support": "customer care"}


def change(user: User) -> Mapping[str, Any] | None:
    """The fields that a user should have, or None to leave it as it is."""
    department = (user.department or "").strip().lower()
    if not department:
        return None
    return {"department": RENAMED.get(department, department)}
