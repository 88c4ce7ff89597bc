"""The local stack's settings."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from dynashard.transport.selection import DEFAULT
from dynashard_local.errors import LocalStackError
from dynashard_local.root import backend_root
from dynashard_local.settings import Settings

pytestmark = pytest.mark.unit


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    settings = Settings.from_env({"PORT": "", "UNRELATED": "x"})

    assert (settings.port, settings.dynamodb_port, settings.data_dir) == (8000, 8001, backend_root() / ".data")
    assert (settings.dynamodb_endpoint, settings.dynoxide_bin, settings.topology_lease_seconds) == (None, None, 30)
    assert (settings.topology_operation_seconds, settings.topology_skew_seconds) == (4, 0)
    assert (settings.growth_mode, settings.growth_cooldown_seconds, settings.growth_quiet_seconds) == ("on", 300, 86400)
    assert settings.transport == DEFAULT
    assert settings.caller_required is False


def test_with_a_simulation_counts_change_sooner_unless_a_variable_says_otherwise() -> None:
    shorter = Settings.from_env({"SIMULATE": "hot-tenant"})
    own = Settings.from_env({"SIMULATE": "hot-tenant", "GROWTH_COOLDOWN_SECONDS": "300"})

    assert (shorter.topology_lease_seconds, shorter.growth_cooldown_seconds) == (3, 10)
    assert (own.topology_lease_seconds, own.growth_cooldown_seconds) == (3, 300)


def test_each_variable_is_read(tmp_path: Path) -> None:
    settings = Settings.from_env(
        {
            "PORT": "0",
            "DYNAMODB_PORT": "9001",
            "DATA_DIR": str(tmp_path / "a" / ".." / "b"),
            "DYNAMODB_ENDPOINT": "http://127.0.0.1:4566",
            "TOPOLOGY_LEASE_SECONDS": "5",
            "TOPOLOGY_OPERATION_SECONDS": "6",
            "TOPOLOGY_SKEW_SECONDS": "7",
            "GROWTH_MODE": "dry_run",
            "GROWTH_COOLDOWN_SECONDS": "8",
            "GROWTH_QUIET_SECONDS": "9",
            "TRANSPORT": "direct",
            "CALLER_REQUIRED": "true",
        }
    )

    assert (settings.port, settings.dynamodb_port, settings.topology_lease_seconds) == (0, 9001, 5)
    assert (settings.topology_operation_seconds, settings.topology_skew_seconds) == (6, 7)
    assert (settings.growth_mode, settings.growth_cooldown_seconds, settings.growth_quiet_seconds) == ("dry_run", 8, 9)
    assert settings.transport == "direct"
    assert settings.caller_required is True
    assert settings.data_dir == tmp_path / "b"
    assert settings.dynamodb_endpoint == "http://127.0.0.1:4566"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "many"),
        ("PORT", "65536"),
        ("DYNAMODB_PORT", "-1"),
        ("TOPOLOGY_LEASE_SECONDS", "0"),
        ("TOPOLOGY_OPERATION_SECONDS", "0"),
        ("TOPOLOGY_SKEW_SECONDS", "-1"),
        ("GROWTH_MODE", "perhaps"),
        ("TRANSPORT", "pigeon"),
        ("CALLER_REQUIRED", "perhaps"),
        ("GROWTH_COOLDOWN_SECONDS", "0"),
        ("GROWTH_QUIET_SECONDS", "299"),
        ("DYNAMODB_ENDPOINT", "localhost:8000"),
        ("LOCAL_WORKERS", "0"),
        ("LOCAL_RELOAD", "maybe"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(LocalStackError) as refused:
        Settings.from_env({name: value})

    assert str(refused.value).startswith(f"{name}={value} cannot be used: ")
    assert "\n" not in str(refused.value)


def test_settings_are_immutable() -> None:
    settings = Settings()

    with pytest.raises(ValidationError):
        setattr(settings, "port", 1)  # noqa: B010 - the type checker refuses the plain way
