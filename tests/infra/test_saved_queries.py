"""Saved log queries read what our functions and the gateway write."""

import json
import logging
import re
from io import StringIO

import pytest

from dynashard.growth.terms import GrowthEvent, Report
from dynashard_cdk.saved_queries import QUERIES
from dynashard_serving.api.request_log import Observer
from dynashard_serving.settings import TableSettings
from dynashard_serving.telemetry.powertools import GrowthLog, open_logger
from tests.infra.emitted import lines, requests
from tests.infra.templates import access_log

pytestmark = pytest.mark.infra

BUILT_IN = {"@timestamp", "@message", "@log", "message"}
LANGUAGE = {
    "and", "as", "avg", "bin", "by", "count", "desc", "fields", "filter", "in", "ispresent", "latest", "like", "limit",
    "max", "min", "or", "parse", "pct", "sort", "stats", "sum",
}  # fmt: skip
GROWTH = QUERIES["growth"].text


@pytest.fixture
def known(caplog: pytest.LogCaptureFixture) -> set[str]:
    """Fields of the lines of requests, of metrics, and of the gateway."""
    requests()
    found = {name for line in lines() for name in json.loads(line)}
    return found | {name for record in caplog.records for name in vars(record)} | {*access_log()} | BUILT_IN


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_every_field_of_a_query_is_written(name: str, known: set[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    text = QUERIES[name].text
    made = set(re.findall(r"\bas (\w+)", text)) | set(re.findall(r"\?<(\w+)>", text))
    bare = re.sub(r'/[^/\n]*/|"[^"]*"', " ", text)

    used = {word for word in re.findall(r"@?[A-Za-z_]\w*", bare) if word != "m"}

    assert used - LANGUAGE - made <= known


def read(line: str) -> dict[str, str]:
    """Apply the patterns of the query for growth to a line."""
    patterns = re.findall(r"parse @message /(.*)/", GROWTH)
    found = [re.search(pattern.replace("(?<", "(?P<"), line) for pattern in patterns]
    return {name: value for match in found if match for name, value in match.groupdict().items()}


def test_the_query_for_growth_reads_the_lines_of_all_functions(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {"event": "asked", "entity": "e.v1.E", "partition": "e.v1.E:abc", "why": "16 to 32"}
    report = Report(GrowthEvent.ASKED, "e.v1.E", "e.v1.E:abc", None, "16 to 32", 32)
    log = StringIO()
    GrowthLog(open_logger("test-of-queries", log), TableSettings(table="t", topology_table="u")).grew(report)
    capsys.readouterr()
    Observer("dev", metrics=True).grew(report)
    [condition] = re.findall(r"filter @message like /(.*)/", GROWTH)

    for line in (log.getvalue(), capsys.readouterr().out):
        assert re.search(condition, line)
        assert read(line) == wanted


def test_every_kind_of_growth_event_is_in_the_query_for_growth() -> None:
    assert all(f"{event.value}" in GROWTH for event in GrowthEvent)
