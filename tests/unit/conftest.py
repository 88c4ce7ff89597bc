"""What unit tests of several rooms start from."""

from pathlib import Path

import pytest


@pytest.fixture
def other_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the environment have credentials and a region too, which must not be used."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "ENVIRONMENT",
        "AWS_SECRET_ACCESS_KEY": "theirs",
        "AWS_DEFAULT_REGION": "us-west-2",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }.items():
        monkeypatch.setenv(name, value)
