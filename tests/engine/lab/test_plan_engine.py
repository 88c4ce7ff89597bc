"""`dynashard plan --live`: a plan from the shard counts in force."""

import pytest

from domain.samples.users import User
from dynashard import definition
from tests.engine.command_line import CommandLine

pytestmark = pytest.mark.engine


def test_a_plan_reads_the_counts_in_force(command_line: CommandLine) -> None:
    ended = command_line.run("plan", "users", "--writes", "9000", "--live", "--json")

    assert ended.status == 0, ended.err
    workload = ended.summary["workload"]
    assert workload["declared"] == definition(User).shards.count  # type: ignore[union-attr]
    assert {index["name"] for index in workload["indexes"]} == {"by_email", "by_department", "by_manager"}
    assert workload["skew"]["hottest"] <= 1
