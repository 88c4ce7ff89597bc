"""What only the transport on botocore does: settings that it refuses, and when it is imported."""

import subprocess
import sys
from math import inf
from pathlib import Path
from typing import Any

import pytest

from dynashard.errors import (
    ConfigurationError,
)
from dynashard.transport import Transport, connect
from dynashard.transport.deadline import remaining
from dynashard.transport.interface import Settings
from dynashard.transport.sdk import SdkTransport
from tests.unit.transport.scripted_server import FOUND, Script

pytestmark = pytest.mark.unit


def test_an_access_key_without_its_secret_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="both"):
        connect(region="eu-west-1", access_key="local")


def test_a_missing_region_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    with pytest.raises(ConfigurationError, match="region"):
        SdkTransport(Settings(access_key="local", secret_key="local")).warm()  # noqa: S106


def test_only_connecting_imports_the_sdk() -> None:
    program = (
        "import sys, dynashard, dynashard.transport, dynashard.transport.classification\n"
        "assert 'botocore' not in sys.modules and 'urllib3' not in sys.modules\n"
        "dynashard.transport.connect('http://127.0.0.1:1', 'eu-west-1', transport='botocore')\n"
        "assert 'botocore' in sys.modules"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603

    assert done.stderr == ""
    assert done.returncode == 0


def test_the_sdk_transport_implements_the_interface(scripted: Script) -> None:
    transport: Transport = scripted(FOUND)

    assert transport.call_all([]) == []


def test_a_request_takes_no_longer_than_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is the time that resizes wait between their phases."""
    left: list[float] = []

    def once(*_: Any) -> dict[str, Any]:
        left.append(remaining())
        return {}

    monkeypatch.setattr("dynashard.transport.sdk.SdkTransport._once", once)
    transport = SdkTransport(Settings("http://127.0.0.1:1", "us-east-1", "a", "b", operation_seconds=4.0))

    transport.call("GetItem", {})

    assert 0 < left[0] <= 4.0
    assert remaining() == inf


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_an_operation_time_of_zero_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigurationError, match="TOPOLOGY_OPERATION_SECONDS"):
        Settings(operation_seconds=seconds)
