"""Getting started and the recipes, typed as printed into a new backend that was made from wheels."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.made_backend import made_backend
from tests.e2e.typed_page import Reader
from tests.markdown import ROOT, snippets

pytestmark = pytest.mark.e2e

OFFLINE = "--offline --install-links --no-audit --no-fund --ignore-scripts"
NEEDED = " ".join(f"file:{ROOT}/node_modules/{name}" for name in ("openapi-fetch", "openapi-typescript-helpers"))
MADE = ("make wheels", ".venv/bin/dynashard new ../notes", "cp -r dist ../notes", "cd ../notes")
"""Lines that make the backend, which is there when the shell begins."""
INSTEAD = {
    **dict.fromkeys(MADE, "true"),
    ".venv/bin/python -m pip install --find-links dist dynashard": "true",
    "python3 -m venv elsewhere": "ln -sfn .venv elsewhere",
    'elsewhere/bin/python -m pip install --find-links dist "dynashard-client[lambda]"': "true",
    ".venv/bin/python -m pip install fastapi uvicorn": "true",
    '.venv/bin/python -m pip install "aws-lambda-powertools[parser]"': "true",
    "npm install --save-dev openapi-typescript@7 typescript@5 openapi-fetch@0.17": "true",
    "npm install ../dynashard-client-0.1.0.tgz": f"npm install {OFFLINE} ../dynashard-client-0.1.0.tgz {NEEDED}",
}
"""What is typed instead of them, and of lines that need a registry, because the folder has what they install."""
LATER = "0.2.0"
UPGRADING = {
    'git commit --all --message "Before the upgrade"': "git init --quiet . && git add --all . && "
    "git -c user.name=ada -c user.email=ada@example.com commit --quiet --message 'Before the upgrade'",
    f"make upgrade VERSION={LATER}": ".venv/bin/dynashard upgrade && touch .venv/.done .venv/.synth",
}
"""The same of the page about upgrading, whose release is installed before."""
RECIPES = (
    "own-table",
    "fastapi",
    "own-lambda",
    "adopt-a-table",
    "add-an-index",
    "import-data",
    "grow-a-log",
    "python-client",
    "frontends",
    "local-cors",
    "throttling-alarm",
)


NOT_TYPED = {
    "adopt-a-table": 1,  # a resize with the lease of production, which takes minutes
    "own-lambda": 1,  # a stack, which tests/infra/test_sharded_table.py synthesises
    "local-cors": 2,  # settings
}
"""The blocks of pages that only tests/unit/project/test_docs_snippets.py checks."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Somebody who has typed getting started, in whose backend the recipes go on."""
    folder = made_backend(tmp_path_factory, "notes")
    (folder.parent / "dynashard").symlink_to(ROOT)
    with Reader(folder, str(folder / ".venv/bin/python"), instead=INSTEAD | UPGRADING) as reader:
        reader.read(ROOT / "docs/getting-started.md")
        yield reader


def test_getting_started_does_and_prints_what_it_says(reader: Reader) -> None:
    assert set(MADE) <= reader.replaced


@pytest.mark.deep
def test_the_recipes_do_and_print_what_they_say(reader: Reader) -> None:
    for name in RECIPES:
        reader.read(ROOT / f"docs/recipes/{name}.md")

    assert reader.replaced == INSTEAD.keys()


@pytest.mark.deep
def test_upgrading_does_and_prints_what_it_says(reader: Reader) -> None:
    [version] = reader.folder.glob(".venv/lib/python3*/site-packages/dynashard_tools/version.py")
    version.write_text(f'VERSION = "{LATER}"\n')

    reader.read(ROOT / "docs/upgrading.md")

    assert reader.replaced >= UPGRADING.keys()
    assert f"=={LATER}" in (reader.folder / "requirements.txt").read_text()


def test_every_recipe_is_typed() -> None:
    pages = {path.stem for path in (ROOT / "docs/recipes").glob("*.md")} - {"index"}

    assert pages == set(RECIPES)


def test_every_block_of_a_recipe_is_typed_written_or_compared() -> None:
    left = Counter(
        path.stem
        for path in [ROOT / "docs/getting-started.md", *(ROOT / "docs/recipes").glob("*.md")]
        for snippet in snippets(path, path.read_text("utf-8"))
        if not snippet.title and snippet.language not in {"bash", "text"}
    )

    assert left == NOT_TYPED
