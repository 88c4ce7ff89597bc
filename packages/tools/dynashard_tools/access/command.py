"""`dynashard access`."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from dynashard_serving.access import Claim, Requirement
from dynashard_serving.discovery import Declarations, RulesOf
from dynashard_tools.entities import declared
from dynashard_tools.failure import CommandError
from dynashard_tools.options import AsJson


def access(
    *,
    required: Annotated[
        bool, typer.Option("--required", help="Fail if a path has no rules, for a check before a deployment.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show who may do what at each path, every scope, and the paths that have no rules. Reads the code alone."""
    domain = declared().declarations
    rows = [_row(each) for each in domain.rules]
    open_paths = [row["path"] for row in rows if not row["rules"]]
    derived = _derived_without_rules(domain)
    if as_json:
        found = {"paths": rows, "scopes": list(domain.scopes), "open": open_paths, "open_derived": derived}
        typer.echo(json.dumps(found))
    else:
        _show(rows)
        typer.echo(f"scopes: {' '.join(domain.scopes) or 'none'}")
        for path in open_paths:
            typer.echo(f"/v1/{path} has no rules: every caller of a tenant may do everything there.")
        for line in derived:
            typer.echo(line)
    if required and (open_paths or derived):
        count = len(open_paths) + len(derived)
        raise CommandError(f"{count} of the paths above have no rules: write access=Access(...) where they are served")


def _row(found: RulesOf) -> dict[str, Any]:
    rules = found.access
    if rules is None:
        return {"path": found.path, "rules": False}
    return {
        "path": found.path,
        "rules": True,
        "needs": {right: _text(rules.requirement(right)) for right in found.rights},
        "owner": rules.owner_field,
        "identity": rules.identity if rules.owner else None,
        "owned": [right for right in found.rights if rules.limits(right)],
        "any_owner": None if rules.any_owner is None else _text(rules.any_owner),
        "policy": None if rules.policy is None else getattr(rules.policy, "__name__", str(rules.policy)),
    }


def _text(requirement: Requirement | None) -> str:
    if requirement is None:
        return "nobody"
    alternatives = requirement if isinstance(requirement, tuple) else (requirement,)
    return " or ".join(_single(each) for each in alternatives)


def _single(each: Any) -> str:
    if isinstance(each, Claim):
        return f"{each.name}={each.value}"
    return each if isinstance(each, str) else "anyone"


def _derived_without_rules(domain: Declarations) -> Sequence[str]:
    """Return a line for each entity without rules that is made of items with rules: rules do not follow data."""
    rules = {one.entity: one.access for one in domain.entities}
    served = {one.entity: one.path for one in domain.entities if one.operations}
    made = [(copies.of, copies.copy) for copies in domain.copies]
    made += [(sums.of, model) for sums in domain.roll_ups for model in sums.into]
    return [
        f"/v1/{served[into]} shows data of {of.__name__}, which has rules, and has none."
        for of, into in made
        if into in served and rules.get(of) is not None and rules.get(into) is None
    ]


def _show(rows: Sequence[dict[str, Any]]) -> None:
    wide = max((len(row["path"]) for row in rows), default=0)
    for row in rows:
        typer.echo(f"{row['path']:{wide}}  {_line(row)}")


def _line(row: dict[str, Any]) -> str:
    """Return the rules of a path in one line: operations by what they need, then the owner rule, then the policy."""
    if not row["rules"]:
        return "no rules"
    by_need: dict[str, list[str]] = {}
    for right, need in row["needs"].items():
        by_need.setdefault(need, []).append(right)
    parts = [f"{', '.join(rights)}: {need}" for need, rights in by_need.items()]
    if row["owned"]:
        limited = "" if len(row["owned"]) == len(row["needs"]) else f" for {', '.join(row['owned'])}"
        unless = f", unless {row['any_owner']}" if row["any_owner"] else ""
        parts.append(f"owner {row['owner']} = {row['identity']}{limited}{unless}")
    if row["policy"]:
        parts.append(f"policy {row['policy']}")
    return "; ".join(parts)
