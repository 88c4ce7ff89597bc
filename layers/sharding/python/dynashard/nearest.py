"""The hint of an error about a name that does not exist: the valid name that was probably meant."""

from collections.abc import Iterable


def hint(name: object, known: Iterable[str]) -> str:
    """Return `; did you mean tenant_id?` for the nearest of the valid names, or '' if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only errors need it

    names = list(known)
    meant = get_close_matches(str(name), names, n=1) or [each for each in names if str(name) in each.split("_")][:1]
    return f"; did you mean {meant[0]}?" if meant else ""
