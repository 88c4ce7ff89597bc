"""Parses arguments: fields as NAME=VALUE, and a document from an argument, a file or standard input."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from dynashard import Entity, definition
from dynashard.reads.filters import WORDS
from dynashard_serving.api.listings import members_of
from dynashard_serving.documents import NO_TIME, number_as_time
from dynashard_serving.json_input import MalformedJsonError, read_json
from dynashard_tools.failure import CommandError
from dynashard_tools.files import file_errors

MAX_DOCUMENT_BYTES: Final = 6 * 1024 * 1024
"""As for direct invocation. A larger item is loaded from a file with `dynashard load`."""
STDIN: Final = "-"
_OPERATOR: Final = re.compile(r"([^=\[\]]+)\[([^=\[\]]*)\]=(.*)", re.DOTALL)
"""Such as `email[prefix]=ada`."""


def fields(model: type[Entity], texts: Sequence[str]) -> dict[str, Any]:
    """Return the fields that arguments such as `id=ada` name, with their values as JSON.

    A name that is given several times has the list of its values. A name that is not a field of the entity keeps its
    text, so that the backend can refuse it.

    Raises:
        CommandError: an argument is not NAME=VALUE, or its field does not accept its value.
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            missing = "name before its `=`" if equals else "`=`"
            raise CommandError(f"{text!r} has no {missing}; write NAME=VALUE, such as id=ada")
        found.setdefault(name, []).append(_value(model, name, value))
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def conditions(model: type[Entity], texts: Sequence[str]) -> dict[str, Any]:
    """Return the fields that choose items of a listing, such as `status=active` and `email[prefix]=ada`, as over REST.

    A field with operators has a mapping of them, and their values as texts; all other values are those of `fields`.

    Raises:
        CommandError: as `fields`; or an operator does not exist, or a field that names no partition has several values.
    """
    found: dict[str, dict[str, list[str]]] = {}
    plain = []
    for text in texts:
        if operator := _OPERATOR.fullmatch(text):
            name, word, value = operator.groups()
            if word not in WORDS:
                raise CommandError(f"{word!r} is not an operator; write one of {', '.join(WORDS)}")
            if word == "eq":
                plain.append(f"{name}={value}")
            else:
                found.setdefault(name, {}).setdefault(word, []).append(value)
        else:
            plain.append(text)
    _refuse_repeated(model, plain, found)
    given = fields(model, plain)
    for name, words in found.items():
        values = {word: members_of(each) if word == "in" else each[0] for word, each in words.items()}
        given[name] = {**({"eq": given[name]} if name in given else {}), **values}
    return given


def _refuse_repeated(
    model: type[Entity], plain: Sequence[str], operators: Mapping[str, Mapping[str, Sequence[str]]]
) -> None:
    """Refuse several values in places that take one; a field of a partition names several partitions."""
    entity = definition(model)
    names = [text.partition("=")[0] for text in plain]
    several = {name for by in (entity, *entity.indexes.values()) for name in by.partition.fields}
    for name in dict.fromkeys(names):
        if names.count(name) > 1 and name in model.model_fields.keys() - several:
            raise CommandError(f"{name} is given {names.count(name)} times: give one value, or '{name}[in]=A,B'")
    for name, words in operators.items():
        for word, values in words.items():
            if len(values) > 1 and word != "in":
                raise CommandError(f"{name}[{word}] is given {len(values)} times: give one value")


def document(argument: str | None, file: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item that JSON (an argument or a file; `-` is standard input) and single fields describe together.

    Raises:
        CommandError: the JSON cannot be read, is not an object, or contradicts `given`.
    """
    if argument is not None and file is not None:
        raise CommandError("the item is given as an argument and with --file: leave one of them out")
    item = _parsed(argument, file)
    for name, value in given.items():
        if name in item and item[name] != value:
            raise CommandError(f"{name} is given twice, with two values: leave one out")
    return {**item, **given}


def _value(model: type[Entity], name: str, text: str) -> Any:
    field = model.model_fields.get(name)
    if field is None or field.annotation is None:
        return text
    adapter = TypeAdapter[Any](field.annotation)
    try:
        value = adapter.validate_strings(text)
        if number_as_time(text, value):
            raise CommandError(f"{name}={text}: {NO_TIME}")
        return to_jsonable_python(value)
    except ValidationError as plain:
        try:
            # Lists, maps and models are written as JSON.
            return to_jsonable_python(adapter.validate_json(text))
        except ValidationError:
            problem = plain.errors(include_url=False, include_input=False)[0]["msg"]
            raise CommandError(f"{name}={text}: {problem}") from None


def _parsed(argument: str | None, file: str | None) -> dict[str, Any]:
    if argument is None and file is None:
        return {}
    if STDIN in (argument, file):
        what, raw = "standard input", sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
    elif file is not None:
        what, raw = file, _read(file)
    else:
        what, raw = "the item", (argument or "").encode(errors="surrogateescape")
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise CommandError(f"{what} has more than {MAX_DOCUMENT_BYTES:,} bytes: load it with `dynashard load`")
    try:
        found = read_json(raw)
    except MalformedJsonError as error:
        raise CommandError(f"{what} {error}") from error
    if not isinstance(found, dict):
        raise CommandError(f'{what} is not a JSON object, such as {{"id": "ada"}}')
    return found


def _read(file: str) -> bytes:
    with file_errors(file, "read"), Path(file).open("rb") as stream:
        return stream.read(MAX_DOCUMENT_BYTES + 1)
