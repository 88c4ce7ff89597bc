"""Seeds of random schedules that have caught a mutant, and are tried first because a search takes long."""

import warnings


def found_again(mutant: str, known: int | None, found: int | None) -> None:
    """Warn if a known seed catches its mutant no longer, because the search for another may take minutes.

    A schedule depends on every request, so a change of the code can make a seed miss its mutant.
    """
    if known is not None and found is not None and found != known:
        warnings.warn(f"CAUGHT_BY: {mutant!r} is caught by seed {found} and no longer by {known}", stacklevel=2)
