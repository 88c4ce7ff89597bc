"""The engine's process: one per data folder, ended with its owner, with clear errors."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import IO

import pytest

from dynashard_local.data_folder import locked, release
from dynashard_local.engine.process import engine_program, running_engine
from dynashard_local.engine.tables import TablePlan, engine_client, ensure_tables
from dynashard_local.errors import LocalStackError
from dynashard_local.settings import Settings
from tests.ports import reserved_ports
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.e2e

PLAN = TablePlan(
    {
        "TableName": "engine-test-table",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    },
    ttl_attribute="expires",
)
OWNER = """
import sys
from pathlib import Path
from dynashard_local.engine.process import running_engine
from dynashard_local.settings import Settings
with running_engine(Settings(data_dir=Path(sys.argv[1]), dynamodb_port=0)) as engine:
    print(engine.endpoint, engine.process.pid, flush=True)
    sys.stdin.read()
"""


def settings_of(tmp_path: Path, **changes: object) -> Settings:
    return Settings.model_validate({"data_dir": tmp_path, "dynamodb_port": 0, **changes})


def line_of(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def owner_of(tmp_path: Path) -> tuple[subprocess.Popen[str], str, int]:
    owner = subprocess.Popen(  # noqa: S603 - the program above
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    endpoint, process_id = line_of(owner.stdout).split()
    return owner, endpoint, int(process_id)


def test_tables_are_made_once_and_their_data_outlives_the_engine(tmp_path: Path) -> None:
    with running_engine(settings_of(tmp_path)) as engine:
        client = engine_client(engine.endpoint)
        first = ensure_tables(client, [PLAN], data="here")
        client.put_item(TableName=PLAN.name, Item={"id": {"S": "1"}})
    with running_engine(settings_of(tmp_path)) as engine:
        client = engine_client(engine.endpoint)
        second = ensure_tables(client, [PLAN], data="here")
        stored = client.get_item(TableName=PLAN.name, Key={"id": {"S": "1"}})
        ttl = client.describe_time_to_live(TableName=PLAN.name)["TimeToLiveDescription"]

    assert (first, second) == ([PLAN.name], [])
    assert stored["Item"] == {"id": {"S": "1"}}
    assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}


def test_a_table_that_does_not_fit_the_template_is_named_and_kept(tmp_path: Path) -> None:
    other = TablePlan(
        {
            **PLAN.create,
            "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
        }
    )
    with running_engine(settings_of(tmp_path)) as engine:
        client = engine_client(engine.endpoint)
        ensure_tables(client, [PLAN], data="here")

        with pytest.raises(LocalStackError, match=r"engine-test-table in here .* its keys are id \(S\), not PK \(S\)"):
            ensure_tables(client, [other], data="here")

        assert client.list_tables()["TableNames"] == [PLAN.name]


def test_the_users_own_aws_configuration_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "not-there")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)

    with running_engine(settings_of(tmp_path)) as engine:
        assert ensure_tables(engine_client(engine.endpoint), [PLAN], data="here") == [PLAN.name]


def test_a_second_engine_on_the_same_data_is_refused_while_the_first_one_lives(tmp_path: Path) -> None:
    with (
        running_engine(settings_of(tmp_path)),
        pytest.raises(
            LocalStackError, match=rf"in use by another local stack \(process {os.getpid()}\): stop that one"
        ),
        running_engine(settings_of(tmp_path)),
    ):
        pass

    with running_engine(settings_of(tmp_path)) as engine:
        assert engine.process is not None


def test_the_engine_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    owner, endpoint, _ = owner_of(tmp_path)
    ensure_tables(engine_client(endpoint), [PLAN], data="here")

    owner.kill()
    owner.wait()

    # The lock is free only after the engine has ended, too.
    with running_engine(settings_of(tmp_path)) as engine:
        assert engine_client(engine.endpoint).list_tables()["TableNames"] == [PLAN.name]


def test_the_data_stays_locked_while_an_engine_outlives_its_owner(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as descriptor:
        engine = subprocess.Popen(
            ["/bin/sh", "-c", "read -r _"], stdin=subprocess.PIPE, pass_fds=(descriptor,), text=True
        )
    gone = subprocess.Popen(["/bin/sh", "-c", ":"])
    gone.wait()
    (tmp_path / "lock").write_text(str(gone.pid))
    times = iter([0.0, 1.0, 2.0, 9.0])
    waits: list[float] = []

    with (
        pytest.raises(LocalStackError, match=rf"in use by another local stack \(process {gone.pid}\)"),
        locked(tmp_path / "lock", clock=lambda: next(times), sleep=waits.append),
    ):
        pass

    engine.communicate("end\n")
    assert len(waits) == 2
    with locked(tmp_path / "lock"):
        pass


def test_data_is_free_as_soon_as_nothing_uses_it_though_a_child_still_has_the_descriptor(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as descriptor:
        watchdog = subprocess.Popen(
            ["/bin/sh", "-c", "read -r _"], stdin=subprocess.PIPE, pass_fds=(descriptor,), text=True
        )
        release(descriptor)

    with locked(tmp_path / "lock"):
        pass

    watchdog.communicate("end\n")


def test_a_crash_is_reported_with_the_end_of_the_log(tmp_path: Path) -> None:
    reports: list[str] = []
    reported = Event()

    def report(message: str) -> None:
        reports.append(message)
        reported.set()

    with running_engine(settings_of(tmp_path)) as engine:
        engine.on_exit(report)
        assert engine.process is not None
        os.kill(engine.process.pid, signal.SIGKILL)
        assert reported.wait(HANG_SECONDS)

    assert "engine ended (status -9)" in reports[0]
    assert "listening on" in reports[0]


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with (
            pytest.raises(LocalStackError, match=rf"Port {port} cannot be used .*: free it, or set DYNAMODB_PORT"),
            running_engine(settings_of(tmp_path, dynamodb_port=port)),
        ):
            pass


def _garbage(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


@pytest.mark.parametrize("damage", [_garbage, Path.mkdir], ids=["garbage", "a folder"])
def test_a_damaged_data_folder_is_named(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    damage(tmp_path / "dynamodb.sqlite")

    with (
        pytest.raises(LocalStackError, match=r"dynamodb\.sqlite is damaged .*: restore it .* or move it away"),
        running_engine(settings_of(tmp_path)),
    ):
        pass


def test_a_database_that_is_damaged_in_its_middle_is_named(tmp_path: Path) -> None:
    with running_engine(settings_of(tmp_path)) as engine:
        ensure_tables(engine_client(engine.endpoint), [PLAN], data="here")
    database = tmp_path / "dynamodb.sqlite"
    content = database.read_bytes()
    database.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))

    with (
        pytest.raises(LocalStackError, match=r"dynamodb\.sqlite is damaged"),
        running_engine(settings_of(tmp_path)),
    ):
        pass


def test_a_platform_without_an_engine_is_refused_with_the_variable_to_set(tmp_path: Path) -> None:
    with pytest.raises(
        LocalStackError, match=r"no DynamoDB engine for plan9-mips .* DYNOXIDE_BIN .* DYNAMODB_ENDPOINT"
    ):
        engine_program(settings_of(tmp_path), system="plan9", machine="mips")


def test_a_wrong_dynoxide_bin_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalStackError, match=r"DYNOXIDE_BIN=.*/missing is not a file"):
        engine_program(settings_of(tmp_path, dynoxide_bin=tmp_path / "missing"))


def test_an_engine_that_already_runs_is_used_and_left_running(tmp_path: Path) -> None:
    with running_engine(settings_of(tmp_path)) as first:
        with running_engine(settings_of(tmp_path, dynamodb_endpoint=first.endpoint + "/")) as second:
            ensure_tables(engine_client(second.endpoint), [PLAN], data="here")

        assert second.endpoint == first.endpoint
        assert engine_client(first.endpoint).list_tables()["TableNames"] == [PLAN.name]


def test_an_engine_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    # A port in use on which nothing listens.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{held.getsockname()[1]}"

        with (
            running_engine(settings_of(tmp_path, dynamodb_endpoint=endpoint)) as engine,
            pytest.raises(LocalStackError, match="does not answer"),
        ):
            ensure_tables(engine_client(engine.endpoint), [PLAN], data="here")


def test_a_port_taken_by_another_process_is_replaced_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken, reserved_ports(1) as (free,):
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = iter([int(taken.getsockname()[1]), free])
        monkeypatch.setattr("dynashard_local.engine.process.free_port", lambda _: next(ports))

        with running_engine(settings_of(tmp_path)) as engine:
            assert engine.endpoint == f"http://127.0.0.1:{free}"
