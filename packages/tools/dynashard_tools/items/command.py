"""`dynashard get`, `list`, `put` and `delete`."""

from typing import Annotated, Literal

import typer

from dynashard_serving.documents import REVISION
from dynashard_tools.entities import exposed
from dynashard_tools.failure import CommandError
from dynashard_tools.items.access import items_of
from dynashard_tools.items.arguments import STDIN, conditions, document, fields
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
    print_item(items_of(environment, wanted).get(fields(wanted.entity, key), include or [], consistent=consistent))


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
    print_item(items_of(environment, wanted).put(whole, _revision(if_match)))


def delete(entity: EntityName, key: Key, if_match: IfMatch = None, environment: Environment = None) -> None:
    """Delete an item, and print nothing: `dynashard delete users tenant_id=abc id=ada`.

    One write: 1 write unit for each KB, in the table and in each index.
    """
    wanted = exposed(entity)
    items_of(environment, wanted).delete(fields(wanted.entity, key), _revision(if_match))


def list_(  # noqa: PLR0917 - typer calls it by name
    entity: EntityName,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE...",
            help="The partition, sort key fields and filters, as over REST: also 'email[prefix]=ada'.",
        ),
    ] = None,
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
    options = {
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
    left_out = LeftOut()
    chosen = {name: value for name, value in options.items() if value is not None and value is not False}
    page = items_of(environment, wanted).page(conditions(wanted.entity, given or []), chosen, left_out)
    print_page(page, [*wanted.entity.model_fields, REVISION], as_json=as_json)
    left_out.end()


def _is_document(text: str) -> bool:
    return text == STDIN or text.lstrip().startswith(("{", "["))


def _revision(text: str | None) -> str | None:
    """Return a revision, given as it is or as an ETag."""
    return text.strip('"') if text is not None else None
