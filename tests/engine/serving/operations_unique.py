"""Writes of items with unique fields. A user has each address of a channel once."""

from typing import Any, Final

from tests.engine.serving.operations_data import Items
from tests.engine.serving.operations_row import Row, done, no, rows

_TAKEN: Final = "ada@example.com"
_FREE: Final = "free@example.com"


def _method(method_id: str, address: str, **fields: Any) -> dict[str, Any]:
    return {"user_id": "ada", "method_id": method_id, "channel": "email", "address": address, **fields}


_ONE: Final[Items] = (("contact-methods", _method("1", _TAKEN)),)
_TWO: Final[Items] = (*_ONE, ("contact-methods", _method("2", "second@example.com")))
_WITHOUT_ID: Final = {"user_id": "ada", "channel": "email", "address": _TAKEN}
_KEY: Final = {"user_id": "ada", "method_id": "2"}

UNIQUE: Final[list[Row]] = [
    *rows(
        "contact-methods",
        "create",
        done("of a free address", {"item": _method("2", _FREE)}, {"address": _FREE}, given=_ONE),
        no("of an address that is taken", "not_unique", {"item": _method("2", _TAKEN)}, given=_ONE),
        no("of a taken address without an id", "not_unique", {"item": _WITHOUT_ID}, given=_ONE),
        done("of the address of another user", {"item": _method("2", _TAKEN, user_id="bob")}, given=_ONE),
        done("of the address in another channel", {"item": _method("2", _TAKEN, channel="push")}, given=_ONE),
        done(
            "of an address that was left",
            {"item": _method("2", _TAKEN)},
            given=_ONE,
            before=[("update", {"key": {"user_id": "ada", "method_id": "1"}, "patch": {"address": _FREE}})],
        ),
        done(
            "of an address whose item is deleted",
            {"item": _method("2", _TAKEN)},
            given=_ONE,
            before=[("delete", {"key": {"user_id": "ada", "method_id": "1"}})],
        ),
    ),
    *rows(
        "contact-methods",
        "put",
        done("with the address that it has", {"item": _method("1", _TAKEN)}, {"address": _TAKEN}, given=_ONE),
        done("with a free address", {"item": _method("2", _FREE)}, {"address": _FREE}, given=_TWO),
        no("with an address that is taken", "not_unique", {"item": _method("2", _TAKEN)}, given=_TWO),
        no("of a new item with a taken address", "not_unique", {"item": _method("3", _TAKEN)}, given=_TWO),
    ),
    *rows(
        "contact-methods",
        "update",
        done("to a free address", {"key": _KEY, "patch": {"address": _FREE}}, {"address": _FREE}, given=_TWO),
        done("to the address that it has", {"key": _KEY, "patch": {"address": "second@example.com"}}, given=_TWO),
        no("to an address that is taken", "not_unique", {"key": _KEY, "patch": {"address": _TAKEN}}, given=_TWO),
        done("to the channel where it is free", {"key": _KEY, "patch": {"channel": "sms"}}, given=_TWO),
    ),
    *rows(
        "contact-methods",
        "batch_write",
        done("with an address that is taken", {"put": [_method("2", _FREE), _method("3", _TAKEN)]}, given=_ONE),
        done("of a delete", {"delete": [{"user_id": "ada", "method_id": "1"}]}, given=_ONE),
    ),
]
