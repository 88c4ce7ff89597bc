"""The links of all pages have targets."""

from pathlib import Path

import pytest

from tests.markdown import anchors, dead_links, pages

pytestmark = pytest.mark.unit


def test_no_link_is_dead() -> None:
    assert [line for page in pages() for line in dead_links(page)] == []


def test_a_dead_link_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Other\n\n## What is `said`, and why\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n"
        "[here](#page) [there](other.md) [part](other.md#what-is-said-and-why) [web](https://example.com/no)\n"
        "[none](missing.md)\n"
        "[no part](other.md#what-is-not-said) `[code](missing.md)`\n"
        "![picture](missing.png)\n"
        "```\n[code](missing.md)\n# No heading\n```\n"
        "[no heading](#no-heading)\n"
    )

    assert dead_links(page) == [
        "page.md:4: missing.md: there is no such file",
        "page.md:5: other.md#what-is-not-said: the page has no such heading",
        "page.md:6: missing.png: there is no such file",
        "page.md:11: #no-heading: the page has no such heading",
    ]


def test_headings_with_equal_text_have_different_anchors() -> None:
    assert anchors("# A\n## Cost\n## Cost\n## Cost, twice: 5 % off\n") == {"a", "cost", "cost-1", "cost-twice-5--off"}
