"""`dynashard logs`."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from tools.failure import CommandError
from tools.options import AsJson

_PAUSE_SECONDS: Final = 1.0
_POLLS: Final = 120
"""How often a query is asked for its results; CloudWatch ends it after an hour."""
_OVER: Final = ("Failed", "Cancelled", "Timeout", "Unknown")

Row = dict[str, str]


def logs(
    name: Annotated[str | None, typer.Argument(help="A saved query; lists them if left out.")] = None,
    environment: Annotated[str | None, typer.Option("--env", help="A deployed environment.")] = None,
    minutes: Annotated[int, typer.Option("--minutes", min=1, max=30 * 24 * 60, help="How far back to look.")] = 60,
    *,
    as_json: AsJson = False,
) -> None:
    """Run a saved query over the logs of a deployed environment, or list the queries.

    CloudWatch bills what a query scans, $0.005 a GB. The logs of the local stack are files in its data folder.
    """
    if environment is None:
        raise CommandError("saved queries are of deployed environments: give --env. The local logs are in DATA_DIR")
    # The local stack needs no SDK.
    import botocore.session  # noqa: PLC0415

    client = botocore.session.get_session().create_client("logs")
    queries = saved(client, environment)
    if name is None:
        names = sorted(queries)
        for line in [json.dumps(names)] if as_json else names:
            typer.echo(line)
        return
    if name not in queries:
        raise CommandError(f"there is no saved query {name!r}. There are: {', '.join(sorted(queries))}")
    now = int(time.time())
    rows = run(client, queries[name], (now - minutes * 60, now))
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        _print(rows, name, minutes)


def saved(client: Any, environment: str) -> dict[str, Mapping[str, Any]]:
    """Return the saved queries of an environment by name. Cost: 1 call for every 1,000. Raises `CommandError`."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - the local stack needs no SDK

    prefix, found, more = f"dynashard-{environment}/", dict[str, Mapping[str, Any]](), dict[str, str]()
    try:
        while True:
            page = client.describe_query_definitions(queryDefinitionNamePrefix=prefix, **more)
            found |= {each["name"].removeprefix(prefix): each for each in page["queryDefinitions"]}
            if not page.get("nextToken"):
                break
            more = {"nextToken": page["nextToken"]}
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"the saved queries of {environment} cannot be read: {error}") from error
    if not found:
        raise CommandError(f"{environment} has no saved queries: deploy the stack Dynashard-{environment}-Monitoring")
    return found


def run(
    client: Any, query: Mapping[str, Any], window: tuple[int, int], sleep: Callable[[float], object] = time.sleep
) -> list[Row]:
    """Run a saved query, and return its rows.

    Args:
        client: botocore's client of CloudWatch Logs.
        query: its definition.
        window: from when until when it looks, in epoch seconds.
        sleep: waits between two looks at the results.

    Raises:
        CommandError: it fails, or it takes too long.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - the local stack needs no SDK

    name = query["name"]
    try:
        started = client.start_query(
            logGroupNames=query["logGroupNames"],
            queryString=query["queryString"],
            startTime=window[0],
            endTime=window[1],
        )
        for _ in range(_POLLS):
            answer = client.get_query_results(queryId=started["queryId"])
            if answer["status"] == "Complete":
                return [_row(each) for each in answer["results"]]
            if answer["status"] in _OVER:
                raise CommandError(f"the query {name} has ended as {answer['status']}: try fewer --minutes")
            sleep(_PAUSE_SECONDS)
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"the query {name} cannot be run: {error}") from error
    raise CommandError(f"the query {name} has not ended after {_POLLS} seconds: try fewer --minutes")


def _row(fields: Sequence[Mapping[str, str]]) -> Row:
    """A row without CloudWatch's pointer to its line."""
    return {each["field"]: each["value"] for each in fields if each["field"] != "@ptr"}


def _print(rows: Sequence[Row], name: str, minutes: int) -> None:
    if not rows:
        typer.echo(f"{name}: nothing in the last {minutes} minutes")
        return
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = Table(*columns)
    for row in rows:
        table.add_row(*(row.get(column, "").strip() for column in columns))
    # Without markup, because rich would take `:abc:` for an emoji.
    Console(emoji=False, markup=False).print(table)
