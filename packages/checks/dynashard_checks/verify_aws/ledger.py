"""The ledger of facts about AWS: its data in `facts/`, and the page docs/assumptions.md that is made from them.

`python -m dynashard_checks.verify_aws.ledger` prints the page; `make assumptions` writes it.
"""

import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

FOLDER: Final = Path(__file__).parent / "facts"
SECTIONS: Final = (
    "throttles",
    "items",
    "transactions",
    "reads",
    "streams",
    "buses",
    "gateway",
    "functions",
    "queues",
    "operations",
)
"""The files of facts, in the order of the page."""
Status = Literal["documented", "observed on local engines", "never observed"]
_INTRO: Final = """# Assumptions about AWS

**Evidence.** This page lists each fact about AWS that the code or the documentation relies on, with its source and its
check. No test of this project has met AWS.

Each row says where AWS documents the fact, where it is relied on, and which check of
[`make verify-aws`](verify-aws.md) observes it on a real account, or why none does. `make assumptions`
makes the page from `packages/checks/dynashard_checks/verify_aws/facts`; tests compare both, and require that every
path, name and check exists.

| status | meaning |
|---|---|
| documented | AWS documents it; nothing here has observed it |
| observed on local engines | a local engine behaves so, in tests; AWS is documented to |
| never observed | AWS does not document it, or only in part, and nothing here has observed it |

A run of `make verify-aws` reports `holds` or `differs` for its own account and day. It changes no status here.
"""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fact(_Part):
    """A fact about AWS.

    Attributes:
        fact: what is true, as sentences.
        source: keys of `sources.toml`.
        places: where it is relied on: a path, and after a colon the name in it that depends on the fact.
        checks: names of checks that observe it.
        why_not: why none does; empty if one does.
        status: what is known about it.
    """

    fact: Annotated[str, Field(min_length=1)]
    source: Annotated[tuple[str, ...], Field(min_length=1)]
    places: Annotated[tuple[str, ...], Field(min_length=1)]
    checks: tuple[str, ...]
    why_not: str = ""
    status: Status


class Section(_Part):
    """Facts that belong together."""

    title: str
    intro: str
    facts: tuple[Fact, ...]


def sections() -> list[Section]:
    """Return all sections. Raises pydantic's `ValidationError` if a file has another form."""
    return [Section.model_validate(tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))) for name in SECTIONS]


def sources() -> Mapping[str, str]:
    """Return the addresses of AWS's pages by their names."""
    return tomllib.loads((FOLDER / "sources.toml").read_text("utf-8"))


def page() -> str:
    """Return the page."""
    found, addresses = sections(), sources()
    lines = [_INTRO, *_counts(found)]
    for section in found:
        lines += ["", f"## {section.title}", "", section.intro, "", "| fact | source | relied on by | check | status |"]
        lines += ["|---|---|---|---|---|", *(_row(fact, addresses) for fact in section.facts)]
    return "\n".join(lines) + "\n"


def _counts(found: Sequence[Section]) -> Iterator[str]:
    facts = [fact for section in found for fact in section.facts]
    by_status = Counter(fact.status for fact in facts)
    checked = sum(bool(fact.checks) for fact in facts)
    counted = ", ".join(f"{by_status[status]} are {status}" for status in by_status)
    yield f"There are {len(facts)} facts: {counted}. {checked} have a check."


def _row(fact: Fact, addresses: Mapping[str, str]) -> str:
    cells = (
        fact.fact,
        ", ".join(f"[{name}]({addresses[name]})" for name in fact.source),
        "<br>".join(_place(place) for place in fact.places),
        ", ".join(f"`{name}`" for name in fact.checks) or fact.why_not,
        fact.status,
    )
    return f"| {' | '.join(cells)} |"


def _place(place: str) -> str:
    path, _, name = place.partition(":")
    return f"`{path}`{f' (`{name}`)' if name else ''}"


if __name__ == "__main__":
    sys.stdout.write(page())
