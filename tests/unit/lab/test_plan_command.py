"""`dynashard plan`: text, JSON, pictures, and errors of one line."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dynashard_tools.cli import main
from tests.markdown import ROOT, snippets

pytestmark = pytest.mark.unit

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `dynashard plan` with arguments; return its exit status, output and errors."""

    def ran(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dynashard", "plan", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return ran


def test_a_plan_of_an_entity_names_its_shards_indexes_cost_and_advice(run: Run) -> None:
    file = ROOT / "examples" / "users.csv"

    status, out, err = run(
        "users", "--items", file, "--tenant", "abc", "--writes", "20000", "--partitions", "50", "--zipf", "1",
        "--lists", "100", "--stored", "1000000", "--load", "1000000", "--growth", "5", "--consistency", "strong",
    )  # fmt: skip

    assert (status, err) == (0, "")
    labels = {line[:24].strip() for line in out.splitlines()}
    assert {"item", "shards", "shards of by_email", "physical partitions", "page, ordered", "growth"} <= labels
    assert "the mean of 1,000 items" in out
    assert "Give the index by_email shards=Shards(" in out
    assert "16.7 minutes with one shard" in out


def test_a_plan_as_json_has_what_the_text_has(run: Run) -> None:
    status, out, _ = run("--item-bytes", "1024", "--writes", "8000", "--shards", "64", "--load", "1000000", "--json")

    document = json.loads(out)

    assert status == 0
    assert document["shards"]["count"] == 64
    assert document["load"]["naive"] == 1000
    assert document["load"]["warm"] < 35
    assert document["advice"]


def test_a_count_that_is_no_power_of_two_is_planned_for_modulo_placement(run: Run) -> None:
    status, out, err = run("--item-bytes", "100", "--writes", "10", "--placement", "modulo", "--shards", "3")

    assert (status, err) == (0, "")
    assert "shards                  3" in out


def test_a_file_of_keys_gives_the_shares(run: Run, tmp_path: Path) -> None:
    keys = tmp_path / "tenants.txt"
    keys.write_text("abc\t90\n" + "".join(f"t{number}\n" for number in range(10)))

    status, out, _ = run("--item-bytes", "500", "--writes", "10000", "--keys", keys)

    assert status == 0
    assert "11, measured in tenants.txt: the hottest has 90.000%" in out
    assert "16 (required)" in out


def test_the_entities_that_share_logical_partitions_are_named(run: Run) -> None:
    _, out, _ = run("overrides", "--writes", "5000")

    assert "shares its logical partitions with team.v1.Team, team.v1.Member, team.v1.Schedule, team.v1.Shift" in out


def test_a_plan_is_drawn_the_same_each_time(run: Run, tmp_path: Path) -> None:
    drawn = []
    for name in ("a.svg", "b.svg"):
        assert run("pings", "--writes", "8000", "--growth", "10", "--plot", tmp_path / name)[0] == 0
        drawn.append((tmp_path / name).read_bytes())

    assert drawn[0] == drawn[1]
    assert b"ping.v1.Ping" in drawn[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--writes", "5"], "the item size is missing: give --item-bytes, or ENTITY"),
        (["people", "--writes", "5"], "no entity is called 'people'"),
        (["users"], "there is nothing to plan"),
        (["users", "--writes", "-1"], "writes is -1; it must be between 0 and 100,000,000"),
        (["users", "--writes", "nan"], "writes is nan"),
        (["users", "--writes", "1", "--partitions", "0"], "partitions is 0"),
        (["users", "--writes", "1", "--zipf", "99"], "zipf is 99; it must be between 0 and 10"),
        (["users", "--writes", "1", "--zipf", "1", "--hottest", "0.5"], "--hottest and --zipf contradict each other"),
        (["users", "--writes", "1", "--partitions", "4", "--hottest", "0.1"], "of 4 partitions it is from 0.25 to 1"),
        (["users", "--writes", "1", "--index", "by_email"], "--index 'by_email' is not NAME=NUMBER"),
        (["users", "--writes", "1", "--index", "by_email=2"], "hottest of index by_email is 2"),
        (["--item-bytes", "9", "--writes", "1", "--index", "a=1"], "--index needs ENTITY"),
        (["--item-bytes", "9", "--writes", "1", "--live"], "--live needs ENTITY"),
        (["users", "--writes", "1", "--env", "dev"], "add --live"),
        (["--item-bytes", "9", "--writes", "1", "--items", "a.csv"], "--items needs ENTITY"),
        (["users", "--writes", "1", "--items", "a.txt"], "must end in .csv, .jsonl or .ndjson"),
        (["users", "--writes", "1", "--items", "missing.csv"], "missing.csv cannot be read"),
        (["users", "--writes", "1", "--keys", "missing.txt"], "missing.txt cannot be read"),
        (["users", "--writes", "1", "--keys", "."], "cannot be read"),
        (["users", "--writes", "1", "--keys", "a", "--partitions", "3"], "leave --partitions out"),
        (["users", "--writes", "1", "--region", "mars"], "no prices for 'mars'"),
        (["users", "--writes", "1", "--prices", "pyproject.toml"], "pyproject.toml: not JSON"),
        (["users", "--writes", "1", "--price", "tea=1"], "no price 'tea'"),
        (["users", "--writes", "1", "--plot", "plan.gif"], "ends in .png or .svg"),
        (["users", "--writes", "9e7", "--growth", "50"], "in month 1: writes is"),
    ],
)
def test_a_wrong_argument_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(ROOT)

    status, out, err = run(*arguments)

    assert (status, out) == (1, "")
    [line] = err.splitlines()
    assert message in line


def test_the_plan_on_the_page_is_what_the_command_prints(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = ROOT / "docs" / "planning.md"
    command, *printed = next(iter(snippets(page, page.read_text("utf-8")))).text.splitlines()

    _, out, _ = run(*shlex.split(command)[3:])

    lines = out.splitlines()
    shown = [line.removesuffix("...") for line in printed if line != "..."]
    assert [line for line in shown if not any(each.startswith(line) for each in lines)] == []


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        # Codeship: 2,500 read and 1,000 write units, and three partitions that share 150 units.
        ("--reads 2500 --writes 1000", "one of 2 provisioned    1,250 of 2,500 read and 500 of 1,000 write units"),
        ("--reads 1500 --writes 500", "physical partitions     4 on demand, 1 provisioned"),
        ("--reads 3000 --writes 1000", "physical partitions     4 on demand, 2 provisioned"),
        ("--reads 150 --stored 25000000", "one of 3 provisioned    50 of 150 read units if"),
        ("--reads 150 --stored 25000000", "uses 33.3% of the table's capacity, and leaves 66.7% unused"),
    ],
)
def test_the_published_shares_of_partitions_are_printed(run: Run, arguments: str, printed: str) -> None:
    base = "--item-bytes 1024 --consistency strong --utilization 100%"

    _, out, _ = run(*shlex.split(f"{base} {arguments}"))

    assert printed in out


def test_the_cost_of_pings_includes_their_roll_ups_stream_and_queue(run: Run) -> None:
    _, out, _ = run("pings", "--item-bytes", "300", "--writes", "1000", "--mean", "100%", "--json")

    document = json.loads(out)
    table = document["with_shards"]["on_demand"]
    parts = {part["name"]: part["dollars"] for part in document["following"]["parts"]}
    assert table == pytest.approx(3285)
    assert [round(table + dollars, -2) for dollars in parts["plays"]] == [6900, 16400]
    assert set(parts) == {"plays", "stream", "queue"}
    assert document["following"]["together"][1] == pytest.approx(table + sum(each[1] for each in parts.values()))


def test_copies_that_a_write_changes_are_in_the_cost(run: Run) -> None:
    costs = []
    for copies in ("0", "1", "5"):
        _, out, _ = run("incidents", "--writes", "10", "--copies", copies, "--json")
        costs.append(json.loads(out)["following"]["parts"][0]["write_units"])

    assert costs == [[0, 0], [0, 5], [0, 17]]


def test_an_entity_without_anything_derived_has_only_its_own_cost(run: Run) -> None:
    _, out, _ = run("users", "--writes", "10", "--json")

    assert json.loads(out)["following"] is None


def test_parts_of_a_whole_may_be_percent(run: Run) -> None:
    arguments = ("users", "--writes", "500", "--json", "--utilization")

    shown = [json.loads(run(*arguments, text)[1]) for text in ("0.7", "70", "70%")]
    refused = run(*arguments, "most")

    assert shown[0] == shown[1] == shown[2]
    assert refused[0] != 0
    assert "'most' is not a part of a whole, such as 0.7 or 70%" in " ".join(refused[2].replace("│", " ").split())


def test_30_gb_do_not_fit_into_one_physical_partition(run: Run) -> None:
    _, out, _ = run("--item-bytes", "1024", "--stored", "31000000", "--writes", "10")

    assert "Its 30 GB take 3 of them; DynamoDB divides it by the sort key." in out


def test_a_long_load_asks_for_more_shards_than_the_rates_do(run: Run) -> None:
    base = ("--item-bytes", "1024", "--writes", "10", "--load")

    _, long, _ = run(*base, "100000000")
    _, short, _ = run(*base, "1000000")

    assert "The load takes 27.8 hours with one shard" in long
    assert "For the load, begin with Shards(64)" in long
    assert "Shards(start=1" in short
    assert "Shards(start=1" not in long
    assert "The load takes" not in short


def test_a_load_asks_for_no_more_shards_than_make_it_faster(run: Run) -> None:
    _, out, _ = run("--item-bytes", "300", "--writes", "10", "--load", "2000000000")

    assert "For the load, begin with Shards(128)" in out


def test_a_long_load_asks_for_no_more_shards_of_a_placement_that_never_has_more(run: Run) -> None:
    _, out, _ = run("--item-bytes", "300", "--writes", "10", "--load", "2000000000", "--placement", "modulo")

    assert "For the load" not in out
    assert "No shards are needed for these rates" in out
