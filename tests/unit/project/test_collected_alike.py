"""Every worker of a parallel run collects the same tests, at any time and with any hash seed.

The workers of each parallel run compare their tests too, but they start at the same time.
"""

from pathlib import Path

import pytest

from tests.collected import ROOT, differences, differences_from

pytestmark = [pytest.mark.unit, pytest.mark.deep]

DIFFERING = {
    "time": "[int(time.time())]",
    "compressed": "[gzip.compress(b'')]",
    "address": "[str(object())]",
    "set": "{'one', 'two', 'three', 'four', 'five'}",
    "temporary": "[tempfile.mkdtemp()]",
    "random": "[uuid.uuid4().hex]",
    "hash": "[hash('text')]",
    "date": "[time.strftime('%Y-%m-%d', time.gmtime(time.time()))]",
}
"""The code of parameters whose ids depend on the process."""
ALIKE = "[1, 'two', b'three']"


def test_two_workers_collect_the_same_ids(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    whole = request.config.args == [str(ROOT / "tests")] or request.config.args == ["tests"]
    if whole and not request.config.option.keyword and not request.config.option.markexpr:
        # This process has already collected them, with another clock, hash seed and temporary folder.
        assert differences_from([item.nodeid for item in request.session.items], ROOT / "tests", tmp_path) == []
    else:
        assert differences(ROOT / "tests", tmp_path) == []


def test_ids_that_depend_on_the_process_are_reported(tmp_path: Path) -> None:
    head = "import gzip, tempfile, time, uuid\nimport pytest\n"
    folder = tmp_path / "some"
    folder.mkdir()
    for name, values in {**DIFFERING, "alike": ALIKE}.items():
        test = f"@pytest.mark.parametrize('value', {values})\ndef test_it(value):\n    pass\n"
        (folder / f"test_{name}.py").write_text(head + test)

    found = [line for line in differences(folder, tmp_path) if line.startswith(("+", "-")) and "test_it[" in line]

    files = [Path(line[1:].partition("::")[0]).stem for line in found]
    assert {file.removeprefix("test_") for file in files} == DIFFERING.keys()
