"""Saved queries of CloudWatch Logs Insights over the functions' logs. `dynashard logs` runs them by their names.

Saving is free of charge; a run costs what it scans.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aws_cdk import aws_logs as logs
    from constructs import Construct


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query.

    Attributes:
        logs: names of the logs that it reads; see `MonitoringStack`.
        text: in the language of CloudWatch Logs Insights.
    """

    logs: tuple[str, ...]
    text: str


_REQUEST: Final = 'filter message = "request"'
_WRITERS: Final = ("api", "commands", "writer", "changes")
_FUNCTIONS: Final = (*_WRITERS, "advance", "work", "watch")
_GROWTH: Final = "asked|would_ask|refused|lost|kept|withdrawn|too_long|cannot|limit|unknown|failed"

QUERIES: Final[Mapping[str, SavedQuery]] = {
    "throttled-requests": SavedQuery(
        ("api",),
        f"""{_REQUEST} and @message like /"throttles":\\{{"/
| stats count(*) as requests, sum(write_units) as writes, sum(read_units) as reads by tenant, method, route, status
| sort requests desc
| limit 50""",
    ),
    "growth": SavedQuery(
        _WRITERS,
        rf"""filter @message like /"outcome": ?"({_GROWTH})"/
| parse @message /"outcome": ?"(?<event>[^"]*)"/
| parse @message /"entity": ?"(?<entity>[^"]*)"/
| parse @message /"partition": ?"(?<partition>[^"]*)"/
| parse @message /"index": ?"(?<slot>[^"]*)"/
| parse @message /"reason": ?"(?<why>[^"]*)"/
| stats count(*) as events, latest(why) as reason by event, entity, partition, slot
| sort events desc
| limit 50""",
    ),
    "server-errors": SavedQuery(
        ("api",),
        f"""{_REQUEST} and status >= 500
| fields @timestamp, tenant, method, route, status, code, error, request_id
| sort @timestamp desc
| limit 50""",
    ),
    "function-errors": SavedQuery(
        _FUNCTIONS,
        """filter @message like /ERROR|Traceback|Task timed out|Runtime exited/
| fields @timestamp, @log, @message
| sort @timestamp desc
| limit 50""",
    ),
    "slow-requests": SavedQuery(
        ("api",),
        f"""{_REQUEST}
| stats count(*) as requests, pct(milliseconds, 99) as p99, max(milliseconds) as slowest, avg(requests) as sent,
    sum(read_units) as reads by method, route
| sort p99 desc
| limit 50""",
    ),
    "expensive-listings": SavedQuery(
        ("api",),
        f"""{_REQUEST} and method = "GET"
| stats count(*) as requests, sum(read_units) as reads, max(read_units) as most, avg(requests) as sent by tenant, route
| sort reads desc
| limit 50""",
    ),
    "outcome-unknown": SavedQuery(
        ("api",),
        f"""{_REQUEST} and code = "outcome_unknown"
| fields @timestamp, tenant, method, route, milliseconds, error, request_id
| sort @timestamp desc
| limit 50""",
    ),
    "cursor-errors": SavedQuery(
        ("api",),
        f"""{_REQUEST} and code in ["invalid_cursor", "unsupported_cursor"]
| stats count(*) as requests by tenant, route
| sort requests desc
| limit 50""",
    ),
    "gateway-refusals": SavedQuery(
        ("access",),
        """filter status in ["429", "503", "504"]
| stats count(*) as requests, max(integrationError) as reason by route, status, bin(1m)
| sort requests desc
| limit 50""",
    ),
    "unauthorized": SavedQuery(
        ("access",),
        """filter status = "401"
| stats count(*) as requests, latest(authorizerError) as reason, min(@timestamp) as first by ip, route
| sort requests desc
| limit 50""",
    ),
    "requests": SavedQuery(
        ("access",),
        """stats count(*) as requests, max(milliseconds) as slowest by bin(5m) as period, status
| sort period desc
| limit 100""",
    ),
    "failed-writes": SavedQuery(
        ("writer",),
        """filter message = "write" and ispresent(error)
| fields @timestamp, @message
| sort @timestamp desc
| limit 50""",
    ),
    "dead-letters": SavedQuery(
        ("changes", "writer"),
        """filter @message like /dead letter/
| fields @timestamp, @message
| sort @timestamp desc
| limit 50""",
    ),
    "stream": SavedQuery(
        ("changes", "watch"),
        """filter ispresent(ChangesLagSeconds) or ispresent(StreamAgeSeconds)
    or @message like /records come again|dead letter|Task timed out/
| stats max(StreamAgeSeconds) as unread, max(ChangesLagSeconds) as lag,
    sum(ChangesHandled) as handled, sum(ChangeBatchesAgain) as again, sum(ChangesDead) as dead by bin(1m) as minute
| sort minute desc
| limit 60""",
    ),
}
"""The queries by name."""


def query_name(environment: str, name: str) -> str:
    """Return the full name of a saved query; the console shows the part before the slash as a folder."""
    return f"dynashard-{environment}/{name}"


def add_queries(scope: "Construct", environment: str, groups: "Mapping[str, logs.ILogGroup]") -> None:
    """Save all queries; `groups` are the logs by their names."""
    from aws_cdk import aws_logs as logs  # noqa: PLC0415 - the command line reads the queries without the CDK

    for name, query in QUERIES.items():
        logs.CfnQueryDefinition(
            scope,
            "Query" + "".join(part.capitalize() for part in name.split("-")),
            name=query_name(environment, name),
            query_string=query.text,
            log_group_names=[groups[each].log_group_name for each in query.logs],
        )
