"""Parse the pages of the checkout: prose, headings, links and snippets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$")
_LINK = re.compile(r"\[[^\]]*\]\(<?([^()\s>]+(?:\([^()\s]*\)[^()\s>]*)*)>?(?: +\"[^\"]*\")?\)")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_TITLE = re.compile(r'title="([^"]+)"')
_ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block of code: the page and line where it begins, the language of its fence, its text, and the file it is."""

    page: Path
    line: int
    language: str
    text: str
    title: str = ""

    @property
    def place(self) -> str:
        """Its place in the format of editors."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def pages() -> list[Path]:
    """Return every page of the checkout's own folders."""
    folders = (ROOT / name for name in ("docs", "examples", "packages"))
    found = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    return sorted(page for page in found if "node_modules" not in page.parts)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page outside blocks of code, with their numbers."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _FENCE.match(line)
        if fence:
            if found and found[2].startswith(fence) and not found[3].strip():
                fence = ""
        elif found:
            fence = found[2]
        else:
            yield number, line


def snippets(page: Path, text: str) -> Iterator[Snippet]:
    """Yield the blocks of code of a page, without the indentation of their fences."""
    begun: tuple[int, str, str, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _FENCE.match(line)
        if begun is not None:
            if found and found[2].startswith(begun[1]) and not found[3].strip():
                language, _, more = begun[3].partition(" ")
                titled = _TITLE.search(more)
                text = "".join(f"{each}\n" for each in lines)
                yield Snippet(page, begun[0] + 1, language, text, titled[1] if titled else "")
                begun, lines = None, []
            else:
                lines.append(line.removeprefix(begun[2]))
        elif found:
            begun = number, found[2], found[1], found[3].strip()


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield the targets of a page's links and pictures within the checkout, with the numbers of their lines."""
    for number, line in prose(text):
        for found in _LINK.finditer(_CODE.sub("", line)):
            if not _ELSEWHERE.match(found[1]):
                yield number, found[1]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as forges and the documentation site make them."""
    found: set[str] = set()
    for _, line in prose(text):
        heading = _HEADING.match(line)
        if heading:
            found.add(_unused(_slug(heading[1]), found))
    return found


def dead_links(page: Path) -> list[str]:
    """Return the dead links of a page, each with its line and the reason."""
    text = page.read_text("utf-8")
    dead = []
    for number, target in links(text):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists():
            dead.append(f"{page.name}:{number}: {target}: there is no such file")
        elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text("utf-8")):
            dead.append(f"{page.name}:{number}: {target}: the page has no such heading")
    return dead


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    kept = re.sub(r"[^\w\- ]", "", plain.lower())
    return kept.strip().replace(" ", "-")


def _unused(slug: str, taken: set[str]) -> str:
    if slug not in taken:
        return slug
    number = 1
    while f"{slug}-{number}" in taken:
        number += 1
    return f"{slug}-{number}"
