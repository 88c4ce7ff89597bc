"""Runs queries in CloudWatch Logs Insights."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dynashard_tools.environments import aws_errors
from dynashard_tools.failure import CommandError
from dynashard_tools.logs.insights import Row

_PAUSE_SECONDS: Final = 1.0
_POLLS: Final = 120
"""How often a query is asked for its results; CloudWatch ends it after an hour."""
_OVER: Final = ("Failed", "Cancelled", "Timeout", "Unknown")


def saved(client: Any, environment: str, unknown: str = "") -> dict[str, Mapping[str, Any]]:
    """Return the saved queries of an environment by name. Cost: 1 call for every 1,000. Raises `CommandError`.

    `unknown` is what the error says besides if there are none.
    """
    prefix, found, more = f"dynashard-{environment}/", dict[str, Mapping[str, Any]](), dict[str, str]()
    with aws_errors(f"the saved queries of {environment} cannot be read"):
        while True:
            page = client.describe_query_definitions(queryDefinitionNamePrefix=prefix, **more)
            found |= {each["name"].removeprefix(prefix): each for each in page["queryDefinitions"]}
            if not page.get("nextToken"):
                break
            more = {"nextToken": page["nextToken"]}
    if not found:
        stack = f"Dynashard-{environment}-Monitoring"
        raise CommandError(f"{environment} has no saved queries: deploy the stack {stack}{unknown}")
    return found


def run(
    client: Any, query: Mapping[str, Any], window: tuple[int, int], sleep: Callable[[float], object] = time.sleep
) -> list[Row]:
    """Run a saved query, and return its rows.

    Args:
        client: boto3's client of CloudWatch Logs.
        query: its definition.
        window: from when until when it looks, in epoch seconds.
        sleep: waits between two looks at the results.

    Raises:
        CommandError: it fails, or it takes too long.
    """
    name = query["name"]
    with aws_errors(f"the query {name} cannot be run"):
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
    raise CommandError(f"the query {name} has not ended after {_POLLS} seconds: try fewer --minutes")


def _row(fields: Sequence[Mapping[str, str]]) -> Row:
    """A row without CloudWatch's pointer to its line."""
    return {each["field"]: each["value"] for each in fields if each["field"] != "@ptr"}
