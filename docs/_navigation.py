"""The site's navigation: the headings and links of the index, so that there is one list of the pages; and decisions.

Links that leave the folder of the pages, such as to an example, work on a forge. The site has only their texts.
"""  # noqa: INP001

import re
from pathlib import Path
from typing import Any

_HEADING = re.compile(r"^(##|###) (.+)$")
_ANY_LINK = re.compile(r"\[([^\]]+)\]\((\.\.?/[^)\s]+)\)")
_LINK = re.compile(r"^- \[(.+)\]\(([^)#]+\.md)\)")


def navigation(docs: Path) -> list[Any]:
    """Return the navigation of a folder of pages. A heading of the third level is a section of the one above it."""
    found: list[Any] = [{"Overview": "index.md"}]
    section, below, title = found, found, ""
    for line in (docs / "index.md").read_text("utf-8").splitlines():
        if heading := _HEADING.match(line):
            below, title = [], heading[2]
            if heading[1] == "##":
                found.append({title: below})
                section = below
            else:
                section.append({title: below})
            if title == "Decisions":
                below.extend(f"decisions/{path.name}" for path in sorted(docs.glob("decisions/*.md")))
        elif title and (link := _LINK.match(line)):
            name, pages = link[1].split(":")[0], _pages(docs, link[2])
            # A page that has the name of its section begins it.
            below.extend(pages if name == title else [{name: pages if len(pages) > 1 else pages[0]}])
    return found


def _pages(docs: Path, page: str) -> list[str]:
    """Return a page, or the pages of a folder if it is the folder's index, which is the first of them."""
    if not page.endswith("/index.md"):
        return [page]
    others = sorted(path.name for path in (docs / page).parent.glob("*.md") if path.name != "index.md")
    return [page, *(f"{Path(page).parent}/{name}" for name in others)]


def on_config(config: Any) -> Any:
    """Set the navigation, when mkdocs has read its settings."""
    config["nav"] = navigation(Path(config["docs_dir"]))
    return config


def without_outside(markdown: str, page: Path, docs: Path) -> str:
    """Return a page whose links to files outside of the folder are their texts."""

    def kept(link: re.Match[str]) -> str:
        target = (page.parent / link[2].partition("#")[0]).resolve()
        return link[0] if target.is_relative_to(docs.resolve()) else link[1]

    return _ANY_LINK.sub(kept, markdown)


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return what the site shows of a page, before mkdocs looks for its links."""
    return without_outside(markdown, Path(page.file.abs_src_path), Path(config["docs_dir"]))
