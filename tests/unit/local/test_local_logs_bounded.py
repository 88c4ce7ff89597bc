"""Logs of the local stack are bounded: one that has grown becomes its own predecessor."""

from pathlib import Path

import pytest

from dynashard_local.logs import LogRotation

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
