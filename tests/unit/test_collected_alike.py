"""Every worker of a parallel run collects the same tests, whenever it starts and however it hashes."""

from pathlib import Path

import pytest

from tests.collected import ROOT, differences

pytestmark = pytest.mark.unit


def test_all_tests_are_collected_alike(tmp_path: Path) -> None:
    assert differences(ROOT / "tests", tmp_path) == []


@pytest.mark.parametrize(
    "values",
    [
        "[int(time.time())]",
        "[gzip.compress(b'')]",
        "[str(object())]",
        "{'one', 'two', 'three', 'four', 'five'}",
        "[tempfile.mkdtemp()]",
        "[uuid.uuid4().hex]",
        "[hash('text')]",
        "[time.strftime('%Y-%m-%d', time.gmtime(time.time()))]",
    ],
)
def test_ids_that_depend_on_the_process_are_found(tmp_path: Path, values: str) -> None:
    file = tmp_path / "test_that_differs.py"
    head = "import gzip, tempfile, time, uuid\nimport pytest\n"
    file.write_text(f"{head}@pytest.mark.parametrize('value', {values})\ndef test_it(value):\n    pass\n")

    found = differences(file, tmp_path)

    assert [line for line in found if line.startswith(("+", "-")) and "test_it[" in line]
