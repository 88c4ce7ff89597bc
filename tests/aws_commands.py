"""Checks commands of the AWS command line against the descriptions of the services, without calling AWS."""

import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore import xform_name

EVERYWHERE = {"query", "output", "region", "profile", "cli-binary-format", "no-cli-pager"}
"""Options that every command has."""


@cache
def _session() -> Any:
    return botocore.session.get_session()


def problems(line: str) -> list[str]:
    """Return what is wrong with a command such as `aws dynamodb describe-table --table-name t`."""
    _, service, operation, *arguments = shlex.split(line, comments=True)
    if service not in _session().get_available_services():
        return [f"there is no service {service}"]
    if operation == "wait":
        return _waiter_problems(service, arguments)
    model = _session().get_service_model(service)
    named = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in named:
        return [f"{service} has no operation {operation}"]
    return list(_option_problems(model.operation_model(named[operation]), arguments))


def _waiter_problems(service: str, arguments: list[str]) -> list[str]:
    waiter, *rest = arguments
    waiters = {xform_name(name, "-"): name for name in _session().get_waiter_model(service).waiter_names}
    if waiter not in waiters:
        return [f"{service} has no waiter {waiter}"]
    found = _session().get_waiter_model(service).get_waiter(waiters[waiter])
    return list(_option_problems(_session().get_service_model(service).operation_model(found.operation), rest))


def _option_problems(operation: Any, arguments: list[str]) -> Iterator[str]:
    members = dict(operation.input_shape.members) if operation.input_shape else {}
    required = set(operation.input_shape.required_members) if operation.input_shape else set()
    known = {xform_name(name, "-"): name for name in members}
    given, option = set(), ""
    for word in arguments:
        if not word.startswith("--"):
            shape = members.get(known.get(option, ""))
            allowed = getattr(shape, "enum", None)
            if allowed and "$" not in word and word not in allowed:
                yield f"--{option} {word}: use {', '.join(allowed)}"
            continue
        option = word[2:].partition("=")[0]
        if option in known:
            given.add(known[option])
        elif option.removeprefix("no-") in known:
            given.add(known[option.removeprefix("no-")])
        elif option not in EVERYWHERE:
            yield f"{operation.name} has no option --{option}"
    yield from (f"{operation.name} needs --{xform_name(name, '-')}" for name in sorted(required - given))
