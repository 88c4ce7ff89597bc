"""JSON Patch (RFC 6902): checked before it is applied, and bounded while it is.

A patch names paths in the JSON document of an item, its `revision` included, so `test` can demand one. What a running
version does not declare is not in that document, so no patch can reach it, and the write keeps it as every write does.

A patch of a few bytes can make a large document by copying what it has copied. So each operation is measured before it
is applied: what it copies or moves counts towards a bound on the whole patch, and no value may come to lie too deep.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed
from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from dynashard.errors import DynashardError, FieldError, ValidationFailedError
from dynashard_serving.documents import Document, written
from dynashard_serving.limits import MAX_BODY_BYTES, MAX_DEPTH, MAX_NAME_LENGTH, MAX_PATCH_OPERATIONS

Operations = Sequence[Mapping[str, Any]]
"""A JSON Patch: a list, where a JSON Merge Patch is an object."""

_MEMBERS: Final[Mapping[str, Sequence[str]]] = {
    "add": ("path", "value"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "move": ("from", "path"),
    "copy": ("from", "path"),
    "test": ("path", "value"),
}


class PatchConflictError(DynashardError, code="patch_conflict", status=409):
    """A JSON Patch does not fit the item: a path does not exist in it, or a test does not hold."""


def is_operations(patch: Any) -> bool:
    """Whether a patch is a JSON Patch, and not a merge patch."""
    return isinstance(patch, list)


def named(patch: Operations) -> frozenset[str]:
    """Return the fields that the paths of a patch begin with."""
    paths = (each[name] for each in patch for name in _MEMBERS[each["op"]] if name != "value")
    return frozenset(parts[0] for path in paths if (parts := JsonPointer(path).parts))


def changed(patch: Operations) -> frozenset[str]:
    """Return the fields that a patch changes, if all of it is applied."""
    paths = (each[name] for each in patch for name in _changed_paths(each))
    return frozenset(parts[0] for path in paths if (parts := JsonPointer(path).parts))


def refuse_malformed(patch: Sequence[Any], read_only: Collection[str]) -> None:
    """Refuse a patch that is wrong whatever the item is.

    Args:
        patch: the list that was sent.
        read_only: fields that only the server sets. A patch may test them.

    Raises:
        ValidationFailedError: with each operation at fault, such as `3.path`.
    """
    if len(patch) > MAX_PATCH_OPERATIONS:
        message = f"The patch has {len(patch)} operations; send at most {MAX_PATCH_OPERATIONS}."
        raise ValidationFailedError(FieldError("", message, "out_of_range"))
    errors = [error for at, each in enumerate(patch) for error in _errors_in(each, at, read_only)]
    if errors:
        raise ValidationFailedError(*errors)


def patched(document: Document, patch: Operations, *, more_bytes: int = 0) -> Document:
    """Return a document after a patch; the given one stays as it is.

    Args:
        document: the item's document.
        patch: operations that `refuse_malformed` accepts.
        more_bytes: how much larger than a request the document may be, because of attachments.

    Raises:
        PatchConflictError: a path does not exist, or a test does not hold; it names the operation.
        ValidationFailedError: the patch would make a document that is too large or too deep.
    """
    result: Document = JsonPatch([]).apply(document)
    room = MAX_BODY_BYTES + more_bytes
    for at, operation in enumerate(patch):
        place = operation["from" if _has_source(operation) else "path"]
        try:
            room -= _moved_bytes(result, operation, room, at)
            place = operation["path"]
            if room < 0:
                most = MAX_BODY_BYTES + more_bytes
                message = f"The patch copies and moves more than {most} bytes. Do less in one patch."
                raise ValidationFailedError(FieldError(str(at), message, "out_of_range"))
            result = JsonPatch([operation]).apply(result, in_place=True)
        except JsonPatchTestFailed as error:
            tested = operation["path"] or "the item"
            raise PatchConflictError(f"Operation {at}: {tested} does not have the tested value.") from error
        except (JsonPatchException, JsonPointerException) as error:
            # The text of the error has what is stored in place of the path.
            raise PatchConflictError(f"Operation {at} does not fit the item, which has no place {place}.") from error
    return result


def _moved_bytes(document: Document, operation: Mapping[str, Any], room: int, at: int) -> int:
    """How many bytes a copy or a move takes to another place; refuses a value that would lie too deep."""
    size = 0
    if operation["op"] == "remove":
        return size
    value = operation.get("value")
    if _has_source(operation):
        value = JsonPointer(operation["from"]).resolve(document)
        if isinstance(value, EndOfList):
            raise JsonPointerException("there is no value after the last one of a list")
        size = len(written(value).encode())
    if size <= room and len(JsonPointer(operation["path"]).parts) + _depth(value) > MAX_DEPTH:
        message = f"The value would be nested deeper than {MAX_DEPTH} levels."
        raise ValidationFailedError(FieldError(f"{at}.path", message, "too_deep"))
    return size


def _has_source(operation: Mapping[str, Any]) -> bool:
    """Return whether an operation takes its value from another path. Other members than its own are ignored."""
    return "from" in _MEMBERS[operation["op"]]


def _depth(value: Any) -> int:
    """Levels of nesting in a value: 0 for one that is neither an object nor a list."""
    level, depth = [value], -1
    while level:
        depth += 1
        inside = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [member for members in inside for member in members]
        if not level:
            return depth
        if depth > MAX_DEPTH:
            break
    return depth


def _errors_in(given: Any, at: int, read_only: Collection[str]) -> list[FieldError]:
    if not isinstance(given, dict):
        return [FieldError(str(at), "Use an object.", "object_type")]
    operation = given.get("op")
    if not isinstance(operation, str) or operation not in _MEMBERS:
        return [FieldError(f"{at}.op", f"Use one of {', '.join(_MEMBERS)}.", "enum")]
    errors = []
    for name in _MEMBERS[operation]:
        if name not in given:
            errors.append(FieldError(f"{at}.{name}", f"{operation} needs this.", "missing"))
        elif name != "value" and (message := _wrong_path(given[name])):
            errors.append(FieldError(f"{at}.{name}", message, "string_pattern_mismatch"))
    return errors or _errors_in_changes(given, at, read_only)


def _errors_in_changes(operation: Mapping[str, Any], at: int, read_only: Collection[str]) -> list[FieldError]:
    """The paths that no operation may change."""
    errors = []
    for name in _changed_paths(operation):
        field = next(iter(JsonPointer(operation[name]).parts), None)
        if field is None:
            errors.append(FieldError(f"{at}.{name}", "Change fields of the item, not all of it. Use PUT.", "immutable"))
        elif field in read_only:
            errors.append(FieldError(f"{at}.{name}", "The server sets this field.", "read_only"))
    return errors


def _changed_paths(operation: Mapping[str, Any]) -> Sequence[str]:
    """The members with the paths that an operation changes."""
    if operation["op"] == "test":
        return ()
    return ("path", "from") if operation["op"] == "move" else ("path",)


def _wrong_path(path: Any) -> str | None:
    if not isinstance(path, str) or len(path) > MAX_NAME_LENGTH or (path and not path.startswith("/")):
        return f"Use a JSON Pointer such as /title, of at most {MAX_NAME_LENGTH} characters."
    try:
        JsonPointer(path)
    except JsonPointerException:
        return "Use a JSON Pointer: ~ is written ~0, and / in a name ~1."
    return None
