"""Logs of the local stack are bounded: one that has grown becomes its own predecessor."""

from pathlib import Path

import pytest

from dynashard_local import logs as local_logs
from dynashard_local.logs import LogRotation
from tests.waiting import until

pytestmark = pytest.mark.unit


def test_a_log_that_has_grown_is_emptied_and_kept_once(tmp_path: Path) -> None:
    logs = LogRotation(tmp_path, print, most=10)
    log, before = tmp_path / "api.log", tmp_path / "api.log.1"
    with log.open("a") as file:
        for text in ("first line\n", "second line\n"):
            file.write(text)
            file.flush()
            logs.rotate()
            kept, left = before.read_text(), log.read_bytes()
            assert (kept, left) == (text, b"")
        file.write("short\n")
        file.flush()
        logs.rotate()

    # A process that appends goes on at the beginning of the emptied file.
    assert (log.read_text(), before.read_text()) == ("short\n", "second line\n")
    assert before.stat().st_mode & 0o777 == 0o600


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "queues.sqlite").write_bytes(b"x" * 100)

    LogRotation(tmp_path, print, most=10).rotate()

    assert (tmp_path / "queues.sqlite").stat().st_size == 100


def test_a_log_that_is_removed_meanwhile_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone.log").symlink_to(tmp_path / "nothing")
    (tmp_path / "api.log").write_bytes(b"x" * 100)

    LogRotation(tmp_path, print, most=10).rotate()

    assert (tmp_path / "api.log").stat().st_size == 0


def test_logs_are_bounded_again_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_logs, "EVERY_SECONDS", 0.001)
    said: list[str] = []
    logs, folder = LogRotation(tmp_path, said.append, most=10), tmp_path / "folder.log"
    folder.mkdir()
    logs.start()
    until(lambda: bool(said))

    folder.rmdir()
    (tmp_path / "api.log").write_bytes(b"x" * 100)

    until(lambda: (tmp_path / "api.log").stat().st_size == 0)
    logs.close()
    [line] = said
    assert "cannot be bounded" in line
