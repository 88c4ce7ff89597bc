"""Frames between two processes arrive whole, in whatever parts, and an end is noticed."""

import os
import socket
from collections.abc import Iterator
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard_local.functions.frames import MAX_UNREAD, Frames

pytestmark = pytest.mark.unit


@pytest.fixture(params=[True, False], ids=["blocking", "non-blocking"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a stream; an event loop makes its end non-blocking."""
    one, other = socket.socketpair()
    one.setblocking(request.param)
    yield one, other
    one.close()
    other.close()


@given(contents=st.lists(st.binary(max_size=300), min_size=1, max_size=5), cut=st.integers(min_value=1, max_value=400))
def test_a_frame_is_read_as_it_was_written_in_whatever_parts_it_arrives(contents: list[bytes], cut: int) -> None:
    reading, writing = os.pipe()
    frames, found = Frames(reading), []
    for content in contents:
        stream = len(content).to_bytes(4, "big") + content
        for start in range(0, len(stream), cut):
            os.write(writing, stream[start : start + cut])
            found.append(frames.read())
    os.close(writing)
    os.close(reading)

    assert [each for each in found if each is not None] == contents


def test_a_frame_larger_than_any_buffer_arrives(ends: tuple[socket.socket, socket.socket]) -> None:
    content = bytes(range(256)) * 16_384
    writer = Thread(target=Frames(ends[0].fileno()).write, args=[content])
    writer.start()

    assert Frames(ends[1].fileno()).next() == content
    writer.join()


def test_a_reader_waits_for_a_frame(ends: tuple[socket.socket, socket.socket]) -> None:
    found: list[bytes] = []
    reader = Thread(target=lambda: found.append(Frames(ends[0].fileno()).next()))
    reader.start()

    Frames(ends[1].fileno()).write(b"late")
    reader.join()

    assert found == [b"late"]


def test_a_frame_of_the_unread_size_is_written_without_a_reader(ends: tuple[socket.socket, socket.socket]) -> None:
    Frames(ends[0].fileno()).write(b"x" * MAX_UNREAD)

    assert Frames(ends[1].fileno()).next() == b"x" * MAX_UNREAD


def test_the_end_of_the_other_process_is_noticed_on_both_ways(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[1].close()
    frames = Frames(ends[0].fileno())

    with pytest.raises(EOFError):
        frames.next()
    with pytest.raises(OSError, match="Broken pipe"):
        frames.write(b"x")
