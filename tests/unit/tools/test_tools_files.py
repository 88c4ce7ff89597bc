"""Files of commands are written completely or not at all, and nothing that is not a file is replaced by one."""

import os
from pathlib import Path

import pytest

from dynashard_tools.failure import CommandError
from dynashard_tools.files import replacing

pytestmark = pytest.mark.unit


def test_a_pipe_is_not_replaced_by_a_file_even_through_a_link(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)

    for path in (pipe, link):
        with pytest.raises(CommandError, match="is not a regular file"), replacing(path):
            pass

    assert pipe.is_fifo()
    assert link.is_symlink()


def test_a_file_is_replaced_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"former")

    with replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"former"

    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
