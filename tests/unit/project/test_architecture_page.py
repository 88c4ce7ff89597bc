"""The places on the architecture page exist."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/architecture.md").read_text()
PACKAGES = {
    "dynashard": "layers/sharding/python/dynashard",
    "dynashard_patterns": "layers/patterns/python/dynashard_patterns",
    "dynashard_serving": "layers/serving/python/dynashard_serving",
}
NAMED = sorted(
    set(re.findall(r"\b(?:layers|functions|packages|stacks|tests|dynashard(?:_\w+)?)/[\w/]*(?:\.py\b|(?<=/))", PAGE))
)


def test_the_page_names_places() -> None:
    assert len(NAMED) > 40


def place(named: str) -> Path:
    first, _, rest = named.partition("/")
    return ROOT / PACKAGES.get(first, first) / rest


def test_the_places_on_the_page_exist() -> None:
    assert [named for named in NAMED if not place(named).exists()] == []
