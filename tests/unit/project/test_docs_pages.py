"""Every page is in the navigation, says at its head of which kind it is, and begins with what it is for."""

import re
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.markdown import ROOT

pytestmark = pytest.mark.unit

DOCS = ROOT / "docs"
HEAD = re.compile(r"\A# .+\n\n\*\*(?P<kind>[A-Z][a-z ]+)\.\*\* (?P<purpose>[^\n]+(?:\n[^\n]+)*?[.:])(?:\s|\Z)")
WORDS_OF_A_SENTENCE = 6
LONG = 2_400
"""The words of a page beyond which it begins with half a page that suffices."""
LISTS = {"assumptions.md": "it is a list of facts"}
"""Long pages that nobody reads from the beginning, with the reason."""


def navigation() -> list[Any]:
    """Return the navigation of the site, as mkdocs gets it."""
    found: list[Any] = runpy.run_path(str(DOCS / "_navigation.py"))["navigation"](DOCS)
    return found


def placed(entries: list[Any], section: str = "") -> Iterator[tuple[str, str]]:
    """Yield the pages of a navigation, each with the heading of its first level."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry, section
        else:
            [(name, below)] = entry.items()
            yield from placed(below if isinstance(below, list) else [below], section or name)


PLACED = dict(placed(navigation()))
MARKED = {
    page: section
    for page, section in PLACED.items()
    # A decision begins with its status, and a runbook with the command to type.
    if page != "index.md" and (not page.startswith(("decisions/", "runbooks/")) or page == "runbooks/index.md")
}


def test_every_page_is_in_the_navigation_once() -> None:
    listed = [page for page, _ in placed(navigation())]

    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_the_sections_of_the_navigation_are_the_kinds_of_pages() -> None:
    assert list(dict.fromkeys(PLACED.values())) == [
        "Overview", "Getting started", "Recipes", "Clients", "Upgrading", "Reference", "Explanations", "Evidence",
        "Decisions",
    ]  # fmt: skip


def fault(text: str, section: str) -> str:
    """Return what is wrong with the head of a page, or an empty text."""
    found = HEAD.match(text)
    if found is None:
        return "begin the page with its kind and a sentence that says what it is for: **Reference.** This page ..."
    if not section.startswith(found["kind"]):
        return f"it is {found['kind']!r}, and the index has it under {section!r}"
    if len(found["purpose"].split()) < WORDS_OF_A_SENTENCE or not re.search(r"\.$", found["purpose"]):
        return f"say in a sentence what the page is for, not {found['purpose']!r}"
    return ""


@pytest.mark.parametrize("page", MARKED)
def test_a_page_begins_with_its_kind_and_what_it_is_for(page: str) -> None:
    assert fault((DOCS / page).read_text("utf-8"), MARKED[page]) == ""


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("# Listing\n\nA listing returns items.\n", "begin the page"),
        ("# Listing\n\n**Recipe.** This page describes how items are listed.\n", "under 'Reference'"),
        ("# Listing\n\n**Reference.** After an article.\n", "say in a sentence"),
        ("# Listing\n\n**Reference.** This page shows three orders of listings:\n\n- one\n", "say in a sentence"),
        ("# Listing\n\n**Reference.** This page describes how\nitems are listed.\n", ""),
    ],
)
def test_a_wrong_head_is_reported(text: str, wrong: str) -> None:
    found = fault(text, "Reference")

    assert (wrong in found) if wrong else not found


def test_a_long_page_begins_with_what_suffices() -> None:
    texts = {page: (DOCS / page).read_text("utf-8") for page in MARKED.keys() - LISTS.keys()}
    long = {page: text for page, text in texts.items() if len(text.split()) > LONG}

    assert len(long) > 5
    assert [
        page for page, text in sorted(long.items()) if text.split("\n## ")[1].partition("\n")[0] != "In short"
    ] == []


def test_the_glossary_defines_each_term_once() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    terms = Counter(term for row in rows if row != "term" for term in row.split(", "))

    assert len(terms) > 50
    assert [term for term, times in terms.items() if times > 1] == []


def test_a_link_that_leaves_the_pages_is_its_text_on_the_site() -> None:
    page = "[`a.py`](../../examples/a.py), [b](../b.md#c), [d](e.md), [the README](../../README.md#tour)\n"

    shown = runpy.run_path(str(DOCS / "_navigation.py"))["without_outside"](page, DOCS / "recipes" / "own.md", DOCS)

    assert shown == "`a.py`, [b](../b.md#c), [d](e.md), the README\n"


def test_no_page_is_beside_the_folders_that_the_navigation_knows() -> None:
    assert {path.parent.relative_to(DOCS) for path in DOCS.rglob("*.md")} == {
        Path(folder) for folder in (".", "decisions", "recipes", "runbooks")
    }
