"""Frames on a stream between two processes: four bytes of length, then the content."""

import os
import select
from typing import Final

MAX_UNREAD: Final = 64 * 1024
"""A frame of at most this many bytes can be written without waiting if the other process has read all before it."""
_LENGTH: Final = 4
_READ: Final = 64 * 1024
"""From 128 KB, the system maps the buffer of each read anew, which takes longer than the rest of it."""


class Frames:
    """One end of a stream. At most one frame is under way in each direction.

    The descriptor may block or not; event loops make it non-blocking.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._received = bytearray()

    def write(self, content: bytes) -> None:
        """Write a frame. Raises `OSError` if the other end is closed."""
        left = memoryview(len(content).to_bytes(_LENGTH, "big") + content)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                self._wait(select.POLLOUT)

    def read(self) -> bytes | None:
        """Return the frame that the next bytes complete; None if more must follow.

        Waits for bytes if the descriptor blocks; otherwise it returns None if there are none.

        Raises:
            EOFError, OSError: the other end is closed.
        """
        try:
            arrived = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return None
        if not arrived:
            raise EOFError
        if not self._received and len(arrived) == _LENGTH + int.from_bytes(arrived[:_LENGTH], "big"):
            return arrived[_LENGTH:]
        self._received += arrived
        end = _LENGTH + int.from_bytes(self._received[:_LENGTH], "big")
        if len(self._received) < max(end, _LENGTH):
            return None
        content = bytes(self._received[_LENGTH:end])
        del self._received[:end]
        return content

    def next(self) -> bytes:
        """Wait for a whole frame. Raises as `read`."""
        while (content := self.read()) is None:
            self._wait(select.POLLIN)
        return content

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self._descriptor, event)
        poll.poll()
