"""What a restore makes of the exit status of its verification."""

from pathlib import Path

import pytest

from dynashard_tools.restore import command

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("status", "agree"), [(0, True), (3, True), (4, False), (1, False), (130, False)])
def test_rows_that_do_not_fit_do_not_stop_a_restore(
    status: int, *, agree: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))

    assert command.tables_agree("prod", {}) is agree
