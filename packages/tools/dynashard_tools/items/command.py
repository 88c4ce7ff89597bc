"""`dynashard get`, `list`, `put` and `delete`."""

from typing import Annotated, Any, Literal

import typer

from dynashard import definition
from dynashard_serving.declare import Exposed
from dynashard_serving.documents import REVISION, TENANT
from dynashard_tools.entities import exposed
from dynashard_tools.failure import CommandError
from dynashard_tools.items.arguments import STDIN, document, fields
from dynashard_tools.items.invocation import invoke
from dynashard_tools.items.printing import print_item, print_page
from dynashard_tools.left_out import LeftOut
from dynashard_tools.options import AsJson, EntityName, Environment

Key = Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="The key, such as tenant_id=abc id=ada.")]
Consistent = Annotated[bool, typer.Option("--consistent", help="Read consistently: see every acknowledged write.")]
IfMatch = Annotated[str | None, typer.Option(help="Write only if the stored item is at this revision.")]


def get(
    entity: EntityName,
    key: Key,
    include: Annotated[list[str] | None, typer.Option(help="Also read this attachment; may be repeated.")] = None,
    environment: Environment = None,
    *,
    consistent: Consistent = False,
) -> None:
    """Print an item as JSON, with its revision: `dynashard get users tenant_id=abc id=ada`.

    One read: 0.5 read units for 4 KB, 1 if consistent.
    """
    wanted = exposed(entity)
    request = {**_request("get", wanted, given := fields(wanted.entity, key)), "key": _without_tenant(given)}
    print_item(invoke(environment, {**request, **_without_unset({"include": include, "consistent": consistent})}))


def put(
    entity: EntityName,
    item: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE... JSON", help="The item: its fields, JSON, or both; - is standard input."),
    ] = None,
    file: Annotated[str | None, typer.Option(help="A file with the item as JSON; - is standard input.")] = None,
    if_match: IfMatch = None,
    environment: Environment = None,
) -> None:
    """Create or replace an item, and print it as stored: `dynashard put users tenant_id=abc -`.

    The output of `get` can be put back, because the revision and fields that the server sets are ignored. With
    `--if-match` it does not overwrite what somebody else has written since. One write: 1 write unit for each KB, in the
    table and in each index.
    """
    wanted = exposed(entity)
    texts = [text for text in item or [] if not _is_document(text)]
    documents = [text for text in item or [] if _is_document(text)]
    if len(documents) > 1:
        raise CommandError(f"{len(documents)} arguments are JSON; give one item")
    whole = document(documents[0] if documents else None, file, fields(wanted.entity, texts))
    request = {**_request("put", wanted, whole), "item": whole, **_without_unset({"if_match": _revision(if_match)})}
    print_item(invoke(environment, request)["item"])


def delete(entity: EntityName, key: Key, if_match: IfMatch = None, environment: Environment = None) -> None:
    """Delete an item, and print nothing: `dynashard delete users tenant_id=abc id=ada`.

    One write: 1 write unit for each KB, in the table and in each index.
    """
    wanted = exposed(entity)
    request = {**_request("delete", wanted, given := fields(wanted.entity, key)), "key": _without_tenant(given)}
    invoke(environment, {**request, **_without_unset({"if_match": _revision(if_match)})})


def list_(  # noqa: PLR0917 - typer calls it by name
    entity: EntityName,
    given: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE...", help="The partition, sort key fields and filters, as over REST."),
    ],
    index: Annotated[str | None, typer.Option(help="An index; the table if left out.")] = None,
    limit: Annotated[int | None, typer.Option(help="Items a page, 1 to 1000; 50 if left out.")] = None,
    order: Annotated[
        Literal["round_robin", "ordered", "shard"] | None,
        typer.Option(help="Order over the shards; round_robin if left out."),
    ] = None,
    direction: Annotated[Literal["asc", "desc"] | None, typer.Option(help="asc if left out.")] = None,
    prefix: Annotated[str | None, typer.Option(help="Only sort keys with this prefix.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Only sort keys from this one on.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Only sort keys before this one.")] = None,
    names: Annotated[str | None, typer.Option("--fields", help="Only these fields, such as id,email.")] = None,
    cursor: Annotated[str | None, typer.Option(help="The cursor of the page before, to get the next one.")] = None,
    environment: Environment = None,
    *,
    consistent: Consistent = False,
    as_json: AsJson = False,
) -> None:
    """Print a page of items: `dynashard list users tenant_id=abc --order ordered`.

    On a terminal it prints a table, elsewhere the JSON object that REST returns. A page may be short; only a null
    cursor means the end. docs/listing.md gives the cost of each order.
    """
    wanted = exposed(entity)
    chosen = fields(wanted.entity, given)
    members = {
        "index": index,
        "limit": limit,
        "order": order,
        "direction": direction,
        "prefix": prefix,
        "from": start,
        "to": end,
        "fields": names.split(",") if names else None,
        "cursor": cursor,
        "consistent": consistent,
    }
    choosing = _by_role(wanted, index, chosen) if wanted.operations else _without_tenant(chosen)
    request = {**_request("list", wanted, chosen), **choosing, **_without_unset(members)}
    left_out = LeftOut()
    page = invoke(environment, request, cursors=True, left_out=left_out)
    print_page(page, [*wanted.entity.model_fields, REVISION], as_json=as_json)
    left_out.end()


def _request(operation: str, wanted: Exposed, given: dict[str, Any]) -> dict[str, Any]:
    return {"operation": operation, "entity": definition(wanted.entity).name, TENANT: given.get(TENANT)}


def _without_unset(members: dict[str, Any]) -> dict[str, Any]:
    """Leave out unset members, because some entities, such as edges, accept fewer."""
    return {name: value for name, value in members.items() if value is not None and value is not False and value != []}


def _without_tenant(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != TENANT}


def _by_role(wanted: Exposed, index: str | None, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Divide the fields of a listing as REST does: into those of the partition, of the sort key, and filters."""
    entity = definition(wanted.entity)
    # The backend refuses an index that does not exist.
    by = entity if index is None else entity.indexes.get(index, entity)
    parts: dict[str, dict[str, Any]] = {"partition": {}, "sort": {}, "filters": {}}
    for name, value in _without_tenant(given).items():
        if name in by.sort.fields and name not in by.partition.fields:
            parts["sort"][name] = value
        elif name in wanted.filters and name not in by.partition.fields:
            parts["filters"][name] = value
        else:
            parts["partition"][name] = value
    return {name: values for name, values in parts.items() if values}


def _is_document(text: str) -> bool:
    return text == STDIN or text.lstrip().startswith(("{", "["))


def _revision(text: str | None) -> str | None:
    """Return a revision, given as it is or as an ETag."""
    return text.strip('"') if text is not None else None
