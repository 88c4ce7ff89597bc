"""The command line on the tables of a program that has no backend."""

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from time import time
from typing import Any
from uuid import uuid4

import pytest

from dynashard import Dynashard
from dynashard.resharding import Resharder
from dynashard.runtime import Runtime
from dynashard_tools.reshard.watch import Watch
from tests.engine.command_line import CommandLine, Outcome

pytestmark = pytest.mark.engine

SHOP = """
from datetime import datetime

from dynashard import (
    Dynashard, Entity, GrowthOptions, Index, Key, Registry, Shards, connect, created_at, declared_counts, new_id
)

class Order{n}(
    Entity, name="shop{n}.v1.Order", key=Key("{{customer}}", "{{id}}"), shards=Shards(2),
    indexes=[Index("GSI1", "by_product", partition="{{customer}}:{{product}}", sort="{{placed}}")],
):
    customer: str
    id: str = new_id()
    product: str = "tea"
    pieces: int = 1
    placed: datetime = created_at()

class Notice{n}(Entity, name="shop{n}.v1.Notice", key=Key("all", "{{id}}"), shards=Shards(2)):
    id: str = new_id()

def version(number):
    class Parcel{n}(Entity, name=f"parcel{n}.v{{number}}.Parcel", key=Key("{{customer}}", "{{id}}")):
        customer: str
        id: str = new_id()

version(1), version(2)

KEYS = ["a secret of 16 bytes or more"]

def connected():
    return connect("{endpoint}", "us-east-1", access_key="local", secret_key="local")

def opened():
    return Dynashard(connected(), table="orders{n}", topology_table="counts{n}", cursor_keys=KEYS)

db = opened()

ADOPTED = {{"key": Key("{{site}}", "{{id}}", prefix="", separator="_"), "shards": Shards(2), "registry": Registry()}}

class Row{n}(Entity, name="row{n}", **ADOPTED):
    site: str
    id: str

class Line{n}(Entity, name="line{n}", **{{**ADOPTED, "registry": Registry()}}):
    site: str
    id: str

def of(table, entity):
    growth = GrowthOptions(entities=[entity])
    return Dynashard(connected(), table=table, topology_table="counts{n}", cursor_keys=KEYS, growth=growth)

rows, lines = of("orders{n}", Row{n}), of("lines{n}", Line{n})
without = Dynashard(connected(), table="t", topology=declared_counts(topology_table=None), cursor_keys=KEYS)
text = "orders"
"""


@dataclass
class Program:
    """A module with a `Dynashard` and an entity, and the command line in its folder."""

    command_line: CommandLine
    number: str
    module: str
    db: Dynashard
    model: Any

    def run(self, *arguments: str, db: str = "db") -> Outcome:
        """Run a command as `DYNASHARD_DB=module:db dynashard ...`."""
        environment = {"DYNASHARD_DB": f"{self.module}:{db}"}
        return replace(self.command_line, environment=environment).run(*arguments)

    def fill(self, customer: str, count: int) -> list[str]:
        return sorted(self.db.collection(self.model).create(customer=customer).id for _ in range(count))

    def ids(self, customer: str) -> list[str]:
        """Read as a process that starts now: the clock of the one that filled the tables has not jumped."""
        with sys.modules[self.module].opened() as db:
            return sorted(each.id for each in db.collection(self.model).items(customer=customer))


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], engine_url: str
) -> Iterator[Program]:
    """A program with its tables, on whose clock waits take no time."""
    number = uuid4().hex[:8]
    (tmp_path / f"shop{number}.py").write_text(SHOP.format(n=number, endpoint=engine_url))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module: Any = __import__(f"shop{number}")
    ahead = 0.0

    def sleep(seconds: float) -> None:
        nonlocal ahead
        ahead += 10 * seconds
        Event().wait(0.002)

    runtime = Runtime(lambda: time() + ahead, sleep)
    monkeypatch.setattr("dynashard_tools.connection.Resharder", partial(Resharder, runtime=runtime))
    monkeypatch.setattr("dynashard_tools.reshard.watch.Watch", partial(Watch, sleep=lambda _: sleep(0.0)))
    with module.db as db:
        db.create_tables()
        line = CommandLine(tmp_path, {}, monkeypatch, capsys)
        yield Program(line, number, f"shop{number}", db, getattr(module, f"Order{number}"))
        for name in (f"orders{number}", f"counts{number}"):
            db.tables.transport.call("DeleteTable", {"TableName": name})


def test_a_waiting_start_carries_the_change_out_to_its_end(program: Program) -> None:
    made = program.fill("ada", 30)

    ended = program.run("reshard", "start", f"Order{program.number}", "ada", "--to", "8", "--wait", "--json")

    assert ended.status == 0, ended.err
    assert (ended.summary["count"], ended.summary["stage"]) == (8, "stable")
    assert program.ids("ada") == made
    assert program.run("verify", "--json").summary["found"] == {}
    shown = program.run("topology", f"shop{program.number}.v1.Order", "ada", "--json").summary
    assert (shown["count"], shown["own"], len(shown["shards"])) == (8, True, 8)


def test_a_verification_knows_which_parts_the_entities_have(program: Program) -> None:
    program.fill("ada", 10)

    name = f"Order{program.number}"

    items = program.run("verify", name, "ada", "--only", "items", "--json")
    copies = program.run("verify", name, "ada", "--only", "items,copies")

    assert (items.status, items.summary["items"]) == (0, 10)
    assert copies.status == 1
    assert f"{name} has no copies to verify. Entities with some: " in copies.err


def test_items_are_put_read_listed_and_deleted(program: Program) -> None:
    name = f"Order{program.number}"
    made = program.run("put", name, "customer=ada", "id=first", "product=rice", "pieces=3").summary
    again = program.run("put", name, json.dumps({**made, "pieces": 4}), "--if-match", made["revision"]).summary
    program.run("put", name, "customer=ada", "id=second", "product=tea")

    got = program.run("get", name, "customer=ada", "id=first", "--consistent").summary
    page = program.run("list", name, "customer=ada", "--order", "ordered", "--limit", "1", "--fields", "id").summary
    rest = program.run("list", name, "customer=ada", "--order", "ordered", "--fields", "id", "--cursor", page["cursor"])
    by_index = program.run("list", name, "customer=ada", "product=rice").summary
    filtered = program.run("list", name, "customer=ada", "pieces=4").summary
    by_operators = program.run("list", name, "customer=ada", "id[prefix]=f", "pieces[gte]=4", "product[in]=rice,tea")
    gone = program.run("delete", name, "customer=ada", "id=first")

    assert (again["pieces"], again["placed"]) == (4, made["placed"])
    assert got == again
    assert page["items"] == [{"id": "first"}]
    assert rest.summary["items"] == [{"id": "second"}]
    assert by_index["items"] == filtered["items"] == by_operators.summary["items"] == [again]
    assert (gone.status, gone.out) == (0, "")
    assert "(not_found)" in program.run("get", name, "customer=ada", "id=first").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "customer=ada", "id=1", "producd=tea"], "has no field producd; did you mean product?"),
        (["list", "customer=ada", "customer=bob"], "customer is given 2 times: give one value"),
        (["put", "customer=ada", "pieces=none"], "pieces=none: "),
        (["list", "customer=ada", "product[exists]=yes"], "exists is 'yes'; write one of true, false"),
        (["get", "customer=ada", "id=1", "--env", "dev"], "--env is an environment of a backend"),
    ],
)
def test_a_mistyped_command_for_items_names_the_cure(program: Program, arguments: list[str], said: str) -> None:
    ended = program.run(arguments[0], f"Order{program.number}", *arguments[1:])

    assert ended.status == 1
    assert said in ended.err


def test_an_entity_without_partition_fields_has_one_partition_whose_name_is_empty(program: Program) -> None:
    name, notices = f"Notice{program.number}", sys.modules[program.module]
    made = program.db.collection(getattr(notices, name)).create()

    exported = program.run("export", name, "--to", "notices.jsonl", "--json")
    listed = program.run("list", name, "--json")
    started = program.run("reshard", "start", name, "", "--to", "4", "--wait")
    verified = program.run("verify", name, "", "--json")
    wrong = program.run("verify", name, "all")

    assert [each["id"] for each in listed.summary["items"]] == [made.id], listed.err
    assert (exported.status, exported.summary["items"]) == (0, 1), exported.err
    assert made.id in (program.command_line.folder / "notices.jsonl").read_text()
    assert (started.status, verified.summary["items"], verified.summary["found"]) == (0, 1, {})
    assert "has the form '', but 'all' has 1 part\n" in wrong.err


def test_files_are_loaded_and_exported(program: Program) -> None:
    name, folder = f"Order{program.number}", program.command_line.folder
    (folder / "orders.csv").write_text("customer,id,pieces\nada,a,1\nada,b,2\nbob,c,3\n")

    loaded = program.run("load", name, "orders.csv", "--json")
    exported = program.run("export", name, "--to", "out.jsonl", "--json")

    assert (loaded.status, loaded.summary["items"]) == (0, 3), loaded.err
    assert (exported.status, exported.summary["items"]) == (0, 3), exported.err
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert sorted((row["customer"], row["id"], row["pieces"]) for row in rows) == [
        ("ada", "a", 1),
        ("ada", "b", 2),
        ("bob", "c", 3),
    ]


def test_what_was_only_requested_is_carried_out_by_work(program: Program) -> None:
    made = program.fill("ada", 10)
    name = f"Order{program.number}"

    started = program.run("reshard", "start", name, "--to", "4", db="opened")
    hot = program.run("hot", "--json").summary
    worked = program.run("reshard", "work")

    assert started.status == 0, started.err
    assert started.out.splitlines()[-1] == "`dynashard reshard work` carries it out"
    assert [each["target"] for each in hot["changing"]] == [4]
    assert (worked.status, worked.out) == (0, "nothing is changing any more\n")
    assert '"count": 4' in program.run("reshard", "status", name, "--json").out
    assert program.ids("ada") == made


def test_throttles_are_read_in_the_region_that_is_named(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, str]] = []

    class Aws:
        """CloudWatch, with one throttle of writes, and DynamoDB, without contributor insights."""

        def get_metric_data(self, *, MetricDataQueries: list[Any], **_: Any) -> dict[str, Any]:  # noqa: N803 - AWS's
            names = [each["MetricStat"]["Metric"]["MetricName"] for each in MetricDataQueries]
            hot = names.index("WriteKeyRangeThroughputThrottleEvents")
            answer = {"Values": [], "StatusCode": "Complete"}
            found = [{**answer, "Id": each["Id"]} for each in MetricDataQueries]
            return {
                "MetricDataResults": [{**each, "Values": [7.0]} if at == hot else each for at, each in enumerate(found)]
            }

        def describe_contributor_insights(self, **_: Any) -> dict[str, Any]:
            return {"ContributorInsightsStatus": "DISABLED"}

    def client(service: str, *, region_name: str) -> Aws:
        opened.append((service, region_name))
        return Aws()

    monkeypatch.setattr("dynashard_serving.aws_services.client", client)

    unnamed, named = program.run("hot"), program.run("hot", "--region", "eu-west-1")

    assert "name its region with --region" in unnamed.out
    assert "table writes: 7, hot key range" in named.out
    assert opened == [("dynamodb", "eu-west-1"), ("cloudwatch", "eu-west-1")]
    assert "contributor insights of" in named.err


def test_a_region_is_refused_for_a_backend(command_line: CommandLine) -> None:
    ended = command_line.run("hot", "--region", "eu-west-1")

    assert ended.status == 1
    assert "--region is for the tables of a program (DYNASHARD_DB)" in ended.err


def test_a_paused_change_does_not_keep_work_waiting(program: Program) -> None:
    program.fill("ada", 10)
    name = f"Order{program.number}"
    program.run("reshard", "start", name, "--to", "4")

    paused, worked = program.run("reshard", "pause", name), program.run("reshard", "work")
    resumed = program.run("reshard", "resume", name)

    assert "carries it out" not in paused.out
    assert (worked.status, worked.out) == (0, "nothing is changing any more\n")
    assert resumed.out.splitlines()[-1] == "`dynashard reshard work` carries it out"


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("shop", "it must name a module and a Dynashard in it, such as shop:db"),
        ("nowhere.at_all:db", "there is no module nowhere: run this in its folder"),
        ("{module}:text", "text of {module} is not a Dynashard, nor a function that returns one"),
        ("{module}:Dynashard", "Dynashard of {module} is not a Dynashard, nor a function that returns one"),
        ("{module}:version", "version of {module} is not a Dynashard, nor a function that returns one"),
        ("{module}:missing", "missing of {module} is not a Dynashard"),
        ("{module}:without", "has no table of shard counts: give it topology_table="),
    ],
)
def test_a_variable_that_leads_nowhere_is_refused_with_the_cure(program: Program, variable: str, message: str) -> None:
    program.command_line.monkeypatch.setenv("DYNASHARD_DB", variable.format(module=program.module))

    ended = program.command_line.run("topology")

    assert (ended.status, ended.out) == (1, "")
    assert message.format(module=program.module) in ended.err


def test_two_adopted_tables_without_prefixes_are_worked_on_in_one_program(program: Program) -> None:
    row, line = f"Row{program.number}", f"Line{program.number}"
    with sys.modules[program.module].lines as lines:
        lines.create_tables()
        program.run("put", row, "site=oslo", "id=1", db="rows")
        for number in ("1", "2"):
            program.run("put", line, "site=oslo", f"id={number}", db="lines")

        listed = program.run("list", line, "site=oslo", "--order", "ordered", db="lines").summary["items"]
        ended = program.run("reshard", "start", line, "--to", "4", "--wait", db="lines")
        verified = [program.run("verify", "--json", db=db).summary for db in ("rows", "lines")]
        unknown = program.run("topology", line, db="rows")

        assert ended.status == 0, ended.err
        assert [each["id"] for each in listed] == ["1", "2"]
        assert [(each["items"], each["found"]) for each in verified] == [(1, {}), (2, {})]
        assert f"no entity is called '{line}'" in unknown.err
        lines.tables.transport.call("DeleteTable", {"TableName": f"lines{program.number}"})


def test_rows_that_another_program_has_written_are_exported_and_counted(program: Program, tmp_path: Path) -> None:
    line, table, data = f"Line{program.number}", f"lines{program.number}", tmp_path / "taken" / "data"
    with sys.modules[program.module].lines as lines:
        lines.create_tables()
        keys = [("oslo_0", "oslo"), ("oslo_1", "oslo"), ("rome_0", "rome")]
        rows = [{"PK": {"S": key}, "SK": {"S": key}, "site": {"S": site}, "id": {"S": key}} for key, site in keys]
        for row in [*rows, {"PK": {"S": "x:y"}, "SK": {"S": "foreign"}}]:
            lines.tables.transport.call("PutItem", {"TableName": table, "Item": row})
        data.mkdir(parents=True)
        with gzip.open(data / "0.json.gz", "wb") as file:
            file.writelines(json.dumps({"Item": row}).encode() + b"\n" for row in rows)

        exports = [("export", line), ("export", "convert", line, str(data.parent))]
        found = [tmp_path / f"{number}.jsonl" for number in range(len(exports))]
        for words, to in zip(exports, found, strict=True):
            assert program.run(*words, "--to", str(to), db="lines").status == 0
        counted = program.run("migrate", line, "--dry-run", "--json", db="lines").summary["items"]

        for to in found:
            assert sorted(json.loads(text)["id"] for text in to.read_text().splitlines()) == [key for key, _ in keys]
        assert sum(counted.values()) == 3
        lines.tables.transport.call("DeleteTable", {"TableName": table})


def test_two_versions_of_an_entity_are_named_in_full(program: Program) -> None:
    names = [f"parcel{program.number}.v{version}.Parcel" for version in (1, 2)]

    shown = program.run("topology", names[1], "--json")
    ambiguous = program.run("topology", f"Parcel{program.number}")

    assert (shown.status, shown.err) == (0, "")
    assert ambiguous.status == 1
    assert all(name in ambiguous.err for name in names)


def test_an_environment_besides_is_refused(program: Program) -> None:
    ended = program.run("topology", "--env", "dev")

    assert ended.status == 1
    assert "--env is an environment of a backend, and DYNASHARD_DB names the tables: unset one" in ended.err


def test_a_backend_has_a_worker_of_its_own(command_line: CommandLine) -> None:
    ended = command_line.run("reshard", "work")

    assert ended.status == 1
    assert "this is for tables without a worker; here `make run` starts one" in ended.err
