"""Attachments: fields that are stored out of line. They are large, compressed, in pieces, and never read in part."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dynashard_patterns.attachments.declaration import Attachment

if TYPE_CHECKING:
    from dynashard_patterns.attachments.repository import DetachedRepository as DetachedRepository
    from dynashard_patterns.attachments.sweep import Swept as Swept
    from dynashard_patterns.attachments.sweep import missing_pieces as missing_pieces
    from dynashard_patterns.attachments.sweep import sweep as sweep
    from dynashard_patterns.attachments.sweep import versions_of as versions_of

_MODULES: Final = {
    "DetachedRepository": "repository",
    "Swept": "sweep",
    "missing_pieces": "sweep",
    "sweep": "sweep",
    "versions_of": "sweep",
}

__all__ = ["Attachment", "DetachedRepository", "Swept", "missing_pieces", "sweep", "versions_of"]


def __getattr__(name: str) -> Any:
    # A declaration does not load what reads and writes.
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
