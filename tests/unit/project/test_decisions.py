"""The records of decisions: each has a number of its own, and what refers to one by its number has the right number."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.markdown import ROOT, pages

pytestmark = pytest.mark.unit

RECORDS = ROOT / "docs" / "decisions"
NAME = re.compile(r"^(\d{4})-[a-z0-9-]+\.md$")
REFERENCE = re.compile(r"(?:decision\s+)?(\d+)\]\((?:[^)\s]*/)?(\d{4})-[a-z0-9-]+\.md", re.IGNORECASE)


def shared_numbers(folder: Path) -> dict[int, list[str]]:
    """Return the records of each number that several have."""
    named = defaultdict(list)
    for page in sorted(folder.glob("*.md")):
        found = NAME.match(page.name)
        assert found, f"{page.name} has no number of four digits"
        named[int(found[1])].append(page.name)
    return {number: names for number, names in named.items() if len(names) > 1}


def wrong_references(text: str) -> list[str]:
    """Return the links whose text has another number than the record that they lead to."""
    return [found[0] for found in REFERENCE.finditer(text) if int(found[1]) != int(found[2])]


def test_every_record_has_a_number_of_its_own() -> None:
    assert shared_numbers(RECORDS) == {}


def test_the_heading_of_a_record_has_its_number() -> None:
    headings = {page.name: page.read_text("utf-8").partition("\n")[0] for page in RECORDS.glob("*.md")}

    assert [name for name, heading in headings.items() if not heading.startswith(f"# {int(name[:4])}. ")] == []


def test_a_link_to_a_record_names_its_number() -> None:
    texts = {page.name: page.read_text("utf-8") for page in pages()}

    assert {name: wrong for name, text in texts.items() if (wrong := wrong_references(text))} == {}
    assert sum(len(REFERENCE.findall(text)) for text in texts.values()) > 10


def test_the_navigation_of_the_site_has_every_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    navigation = __import__("_navigation").on_config({"docs_dir": str(ROOT / "docs")})["nav"]

    [decisions] = [section["Decisions"] for section in navigation if "Decisions" in section]
    assert decisions == [f"decisions/{page.name}" for page in sorted(RECORDS.glob("*.md"))]


def test_numbers_that_are_shared_or_wrong_are_found(tmp_path: Path) -> None:
    for name in ("0007-one.md", "0007-other.md", "0008-two.md"):
        (tmp_path / name).touch()

    assert shared_numbers(tmp_path) == {7: ["0007-one.md", "0007-other.md"]}
    text = "[decision 8](decisions/0008-two.md) ([Decision\n7](decisions/0008-two.md)) [0008](0007-one.md)"
    assert wrong_references(text) == ["Decision\n7](decisions/0008-two.md", "0008](0007-one.md"]
