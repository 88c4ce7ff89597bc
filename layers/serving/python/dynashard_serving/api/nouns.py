"""What an entity is called in sentences: `ContactMethod` is `a contact method`."""

import re
from inspect import cleandoc
from typing import Any, Final

_WORDS: Final = re.compile(r"[A-Z][a-z0-9]*|[A-Z]+(?![a-z])")


def singular(model: type[Any]) -> str:
    """The noun for one item, from the class name."""
    return " ".join(word.lower() for word in _WORDS.findall(model.__name__)) or model.__name__


def one(model: type[Any]) -> str:
    """The noun for one item, with its indefinite article."""
    noun = singular(model)
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def plural(path: str) -> str:
    """The noun for several items, from the path that serves them."""
    return path.replace("-", " ")


def sentence(model: type[Any]) -> str:
    """The first paragraph of the class's docstring, on one line."""
    return " ".join(cleandoc(model.__doc__ or "").partition("\n\n")[0].split())
