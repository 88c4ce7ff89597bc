"""What errors about names and arguments that do not exist say to write instead."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_NOTHING: Final[Mapping[str, str]] = {}


def hint(name: object, known: Iterable[str], instead: Mapping[str, str] = _NOTHING) -> str:
    """Return `; did you mean tenant_id?` for the nearest of the valid names in any case, or '' if none is near.

    For what other libraries call it, `instead` has what to write: then `; write` with that.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only errors need it

    if isinstance(name, str) and name in instead:
        return f"; write {instead[name]}"
    names, typed = {each.lower(): each for each in known}, str(name).lower()
    meant = get_close_matches(typed, names, n=1) or [each for each in names if typed in each.split("_")][:1]
    return f"; did you mean {names[meant[0]]}?" if meant else ""


def checked(
    of: str, refused: Callable[[str], Exception], *, instead: Mapping[str, str] = _NOTHING, example: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse wrong arguments of a function by what `refused` makes of the problem. Errors from inside of it pass.

    The problem names the function as `of`, and ends with the `example`; without one, an unknown name with its `hint`.
    """

    def decorated(call: Callable[P, R]) -> Callable[P, R]:
        @wraps(call)
        def checking(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return call(*args, **kwargs)
            except TypeError as error:
                problem = _problem(of, call, args, kwargs, instead)
                if problem is None:
                    raise
                raise refused(f"{problem}; write {example}" if example else problem) from error

        return checking

    return decorated


def with_example(example: str, refused: Callable[[str, str], Exception]) -> Callable[[type[T]], type[T]]:
    """Refuse wrong arguments of a class by an error of its name and the problem, with an example of right ones."""

    def decorated(part: type[T]) -> type[T]:
        name, init = part.__name__, part.__init__
        setattr(part, "__init__", checked(name, partial(refused, name), example=example)(init))  # noqa: B010 - mypy refuses an assignment
        return part

    return decorated


def _problem(
    of: str, call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], instead: Mapping[str, str]
) -> str | None:
    """What is wrong with the arguments of a call; None if nothing is."""
    from inspect import signature  # noqa: PLC0415 - only errors need it

    taken = signature(call)
    for name in kwargs:
        if name not in taken.parameters:
            return f"{name} is not an argument of {of}{hint(name, taken.parameters, instead)}"
    try:
        taken.bind(*args, **kwargs)
    except TypeError as error:
        return f"{of}: {str(error).replace('positional arguments', 'values without a name')}"
    return None
