"""The site's navigation: the headings and links of the index, so that there is one list of the pages; and decisions."""  # noqa: INP001

import re
from pathlib import Path
from typing import Any

_HEADING = re.compile(r"^## (.+)$")
_LINK = re.compile(r"^- \[(.+)\]\(([^)#]+\.md)\)")


def _index_first(page: Path) -> tuple[bool, str]:
    return page.name != "index.md", page.name


def on_config(config: Any) -> Any:
    """Set the navigation, when mkdocs has read its settings."""
    docs, sections = Path(config["docs_dir"]), list[tuple[str, list[dict[str, str | list[str]] | str]]]()
    for line in (docs / "index.md").read_text("utf-8").splitlines():
        heading, link = _HEADING.match(line), _LINK.match(line)
        if heading:
            sections.append((heading[1], []))
        elif link and sections:
            name, page = link[1].split(":")[0], link[2]
            # An index stands for the pages of its folder.
            below = [
                f"{Path(page).parent}/{path.name}"
                for path in sorted((docs / page).parent.glob("*.md"), key=_index_first)
            ]
            sections[-1][1].append({name: below if page.endswith("/index.md") else page})
        if heading and heading[1] == "Decisions":
            sections[-1][1].extend(f"decisions/{path.name}" for path in sorted(docs.glob("decisions/*.md")))
    config["nav"] = [{"Overview": "index.md"}, *({name: pages} for name, pages in sections)]
    return config
