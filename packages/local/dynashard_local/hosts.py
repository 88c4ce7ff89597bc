"""Addresses of the stack on this machine: the names by which requests may reach it, and one that no page finds."""

import socket
from secrets import randbelow
from typing import Final

HOSTS: Final = ("127.0.0.1", "localhost")
"""The names by which requests may address the stack."""


def names_us(host: bytes) -> bool:
    """Whether a `Host` header names this stack, with or without a port."""
    return host.partition(b":")[0].decode("latin-1") in HOSTS


def hidden_host() -> str:
    """Return a random loopback address; 127.0.0.1 on systems that have no other, such as macOS.

    A web page can try all ports of 127.0.0.1, but not all of 16 million addresses.
    """
    host = f"127.{1 + randbelow(255)}.{randbelow(256)}.{1 + randbelow(254)}"
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return "127.0.0.1"
    return host
