"""Processes that were forked after a request share no connection with their parent, nor wait for its locks."""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from dynashard_lab.bench.canned import Asked, Reply, canned_server
from tests.unit.transport.certificates import certificate_for, served

pytestmark = pytest.mark.unit


def echo(asked: Asked) -> Reply:
    return Reply(orjson.dumps({"Item": orjson.loads(asked.body)["Key"]}))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transport", ["direct", "botocore"])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_children_forked_after_a_request_get_their_own_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, *, secure: bool
) -> None:
    certificate = certificate_for("localhost", tmp_path) if secure else None
    if certificate:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))

    with canned_server(echo, tls=served(certificate) if certificate else None) as url:
        said = subprocess.run(  # noqa: S603 - this checkout's own module
            [sys.executable, "-m", "tests.unit.transport.forking", transport, url],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    assert said.stdout.split() == ["0", "0", "960"], said.stderr
