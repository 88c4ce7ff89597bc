"""Names and prose use the terms of the field: private words that readers would have to learn are reported.

The rooms in `ROOMS` are clean. When another one is, add it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.markdown import ROOT, pages, prose

pytestmark = pytest.mark.unit


@dataclass(frozen=True, slots=True)
class Word:
    """A private word, and what to write instead.

    Attributes:
        instead: the remedy.
        prose: a regular expression for text that people read: pages, docstrings, comments and messages. Empty if the
            word is good English there.
        pages: a regular expression for the prose of pages alone.
        names: the words of identifiers and modules that it matches: `told` matches `told_of` and `ToldError`.
        modules: whole names of modules that it matches.
        kept: identifiers that stay, because settings, codes or stored attributes depend on them.
    """

    instead: str
    prose: str = ""
    pages: str = ""
    names: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()


def word(instead: str, *, prose: str = "", pages: str = "", names: str = "", modules: str = "", kept: str = "") -> Word:
    """Return a row of the table. Names in a list are separated by spaces."""
    return Word(instead, prose, pages, *(frozenset(each.split()) for each in (names, modules, kept)))


WORDS = (
    word("report, return, or distinguish", prose=r"\b(?:told|tells|telling)\b", names="told tells telling"),
    word("a resize request", prose=r"\bwish(?:es|ed)?\b", names="wish wishes"),
    word("the materializer", prose=r"\bkeepers?\b", names="keeper keepers", modules="keeper"),
    word("a retry policy", prose=r"\bpatien(?:ce|t)\b", names="patience patient", modules="patience"),
    word(
        "workers, connections, or the parallelization factor",
        prose=r"(?<!changes\.)\blanes?\b(?!:)",
        names="lane lanes",
        kept="lanes LANES MOST_LANES",
    ),
    word("the first write of a record", prose=r"\bfound(?:ing|ed|s)\b", names="founding founded founds"),
    word("the growth log", prose=r"\bwitness(?:es)?\b", names="witness witnesses", modules="witness"),
    word("an event", prose=r"\bnews\b", names="news"),
    word("serving", prose=r"\bhosting\b", names="hosting", modules="hosting"),
    word("the data of a tenant", prose=r"\bholdings\b", names="holdings", modules="holdings"),
    word("repair", names="mending mender", modules="mending"),
    word("QueueSender", names="outbox", modules="outbox"),
    word("Message or DeadLetter", modules="letters"),
    word("a relocation marker", prose=r"\brelocation marks?\b"),
    word("an attachment", prose=r"\bdetached (?:field|piece)s?\b", names="detached", modules="detached"),
    word("a stream consumer", prose=r"\bfollowers? of (?:the )?(?:stream|changes)\b"),
    word("the participant or its verdict", names="lesson lessons", modules="transaction_course"),
    word(
        "what the module contains",
        modules="means births standing placing moved once beside way later together including special incoming",
    ),
    word("someone who, or a condition with if", prose=r"\bwhoever\b"),
    word("is ignored, or decides", prose=r"\bha(?:s|ve) (?:no|a) say\b"),
    word("stop moving", prose=r"\bcomes? to rest\b"),
    word("because", prose=r", for (?:they|there|nobody|nothing)\b"),
    word(
        "is not a",
        prose=r"(?<!here )\b(?:is|are|was|were) no (?!"
        r"(?:longer|more|less|fewer|later|earlier|slower|faster|larger|smaller|shorter|greater|higher|lower|better|worse)\b)[a-z]+",
    ),
    word("created_at and updated_at, which the server sets", pages=r"\bstamps?\b"),
    word("write guarantee", pages=r"\blevels? of (?:care|handling)\b"),
    word("is paced, or leaves capacity to", pages=r"\bmakes? way\b"),
    word("the reference codec", pages=r"\bordinary way\b"),
    word("is queried, requested or called", pages=r"\b(?:is|are|was|were|be|been) asked\b"),
    word("query every shard", pages=r"\basks? (?:all|every|a|any|these|the) shards?\b"),
    word("find, get, read, or share", pages=r"\bmeets?\b|(?<!has )(?<!\| )\bmet\b"),
    word("requested, required or legitimate", pages=r"\bwanted\b"),
    word("a resize", prose=r"\bchanges? of (?:\w+ ){0,2}counts?\b"),
    word("raises the errors", pages=r"\bhas the errors\b"),
    word("a format, a codec, or a template", pages=r"\b(?:row|page|item|stored|new|old) forms?\b"),
)
"""The private words, with their remedies."""

ROOMS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "app.py",
    "docs",
    "examples",
    "functions",
    "layers",
    "packages",
    "stacks",
    "tests",
)
"""The rooms without private words: pages, and folders with pages and modules."""

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CODE = re.compile(r"(`+).+?\1|\{[^{}]*\}")
"""Code within prose: text in backticks, and the expressions of f-strings."""
_TOKEN = re.compile(
    r"""(?P<text>\#[^\n]*|(?:\b[bfru]{1,2})?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^\\"])*"|'(?:\\.|[^\\'])*'))
    |\d\w*|[^\W\d]\w*""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
"""A comment, a string, a number or a name. `tokenize` needs four times as long for all modules."""


class Words:
    """Regular expressions for private words with their remedies, and one for any of them, which most lines lack."""

    def __init__(self, expressions: Mapping[str, str]) -> None:
        """Compile the expressions, which are the keys; the values are their remedies."""
        self.each = [(re.compile(one, re.IGNORECASE), instead) for one, instead in expressions.items()]
        self.any_of_them = re.compile("|".join(expressions), re.IGNORECASE)


_IN_TEXT = {each.prose: each.instead for each in WORDS if each.prose}
_OF_TEXT = Words(_IN_TEXT)
_OF_PAGES = Words(_IN_TEXT | {each.pages: each.instead for each in WORDS if each.pages})


def findings(path: Path) -> list[str]:
    """Return the private words of a page or a module, each with its place and its remedy."""
    place = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    found = _of_page(path) if path.suffix == ".md" else _of_module(path)
    return [f"{place}:{line}: {said!r}: write {remedy}" for line, said, remedy in found]


def _of_page(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in prose(path.read_text("utf-8")):
        # A changelog keeps the words of its releases.
        yield from _of_text(number, line, _OF_TEXT if path.name == "CHANGELOG.md" else _OF_PAGES)


def _of_module(path: Path) -> Iterator[tuple[int, str, str]]:
    for each in WORDS:
        if path.stem in each.modules:
            yield 1, path.stem, each.instead
    source = path.read_text("utf-8")
    line, counted = 1, 0
    for token in _TOKEN.finditer(source):
        text = token["text"]
        if text is None:
            found = [(0, token[0], remedy) for remedy in _of_name(token[0])]
        elif " " in text:
            found = [each for number, said in enumerate(text.splitlines()) for each in _of_text(number, said, _OF_TEXT)]
        else:
            # Texts without a space are codes, attributes and paths.
            continue
        if found:
            line, counted = line + source.count("\n", counted, token.start()), token.start()
            yield from ((line + below, said, remedy) for below, said, remedy in found)


def _of_text(number: int, line: str, words: Words) -> Iterator[tuple[int, str, str]]:
    plain = _CODE.sub("", line) if "`" in line or "{" in line else line
    if words.any_of_them.search(plain):
        for expression, instead in words.each:
            if found := expression.search(plain):
                yield number, found[0], instead


@cache
def _of_name(name: str) -> Sequence[str]:
    parts = {part.lower() for part in _PARTS.findall(name)}
    return [each.instead for each in WORDS if parts & each.names and name not in each.kept]


def files(room: str) -> list[Path]:
    """Return the pages and modules of a room."""
    path = ROOT / room
    found = path.rglob("*") if path.is_dir() else [path]
    return sorted(each for each in found if each.suffix in {".md", ".py"} and each != Path(__file__) and each.is_file())


@pytest.mark.parametrize("room", ROOMS)
def test_a_clean_room_has_no_private_words(room: str) -> None:
    assert [finding for path in files(room) for finding in findings(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "The caller was told of the throttle.",
        "The wish is stored.",
        "It is compared by the keeper of the copies.",
        "Patience ends after ten seconds.",
        "Each lane has a socket.",
        "The record is founded by the first reader.",
        "The news of a growing count.",
        "Whoever writes an item reads its revision.",
        "The proxy of the user has no say.",
        "The images are not used, for they may come twice.",
        "A claim that its owner edits is no boundary.",
        "They wait for a change of the shard count.",
    ],
)
def test_a_private_word_is_reported_with_its_place_and_remedy(text: str, tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(f"# Title\n\n{text}\n")
    module.write_text(f'"""Title.\n\n{text}\n"""\n\nx = 1  # {text}\nraise ValueError("{text}")\n')

    [finding] = findings(page)

    assert finding.startswith("page.md:3: ")
    assert ": write " in finding
    assert [each.split(":")[1] for each in findings(module)] == ["3", "6", "7"]


@pytest.mark.parametrize(
    "text",
    [
        "The creation stamp is kept.",
        "Each level of care has its cost.",
        "Callers make way for the mover.",
        "It goes the ordinary way.",
        "The others are asked in the second round.",
        "A page asks every shard.",
        "A read that meets a marker follows it.",
        "A throttle that no retry met.",
        "The resize is wanted.",
        "It takes every item, and has the errors.",
        "Deploy what reads the new form.",
    ],
)
def test_a_word_that_no_page_defines_is_reported_on_pages_alone(text: str, tmp_path: Path) -> None:
    page, module, changelog = tmp_path / "page.md", tmp_path / "module.py", tmp_path / "CHANGELOG.md"
    for written in (page, changelog):
        written.write_text(f"# Title\n\n{text}\n")
    module.write_text(f'"""{text}"""\n')

    assert [": write " in each for each in findings(page)] == [True]
    assert findings(module) == findings(changelog) == []


def test_a_page_that_names_fences_says_what_they_are() -> None:
    named = [
        page
        for page in pages()
        if page.name != "CHANGELOG.md"
        and any(re.search(r"\bfences?\b", _CODE.sub("", line)) for _, line in prose(page.read_text("utf-8")))
    ]

    assert named
    assert [page.name for page in named if "lower bound" not in page.read_text("utf-8")] == []


@pytest.mark.parametrize(
    "source",
    [
        "told = 1",
        "def resize_wishes(): ...",
        "class ToldError: ...",
        "self.keeper.close()",
        "OUTBOX = None",
        "of(lane=1)",
    ],
)
def test_a_private_name_is_reported(source: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"{source}\n")

    assert len(findings(module)) == 1


@pytest.mark.parametrize("name", ["keeper", "letters", "mending", "beside", "means"])
def test_a_private_name_of_a_module_is_reported(name: str, tmp_path: Path) -> None:
    module = tmp_path / f"{name}.py"
    module.write_text("x = 1\n")

    assert len(findings(module)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "The worker runs beside the API.",
        "An id has letters, digits and dashes; a dead letter has its reason.",
        "Look up the item.",
        "There is no item with this key, and it is no longer listed.",
        "A smaller page is no slower.",
        "The setting `changes.lanes` and the field `news` of the log.",
        "There are {self.lanes} batches.",
        "It is found by its key.",
        "It waits, for a second at most.",
        "The process is detached from its parent.",
    ],
)
def test_good_english_is_not_reported(text: str, tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(f"{text}\n\n```\ntold wish keeper\n```\n")
    module.write_text(f'"""{text}"""\n\nlanes = found = besides = letter = "told"\n')

    assert findings(page) == []
    assert findings(module) == []


def test_every_room_exists() -> None:
    assert [room for room in ROOMS if not files(room)] == []
