"""The release before and this one in turn on one data folder, each killed while items move and messages wait."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.release_folder import ReleaseFolder, settled
from tests.releases.archive import unpacked
from tests.shared import made_once

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc"),
]

RELEASE = "0.1.0"


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReleaseFolder]:
    older = made_once(tmp_path_factory, f"release-{RELEASE}", lambda place: unpacked(RELEASE, place))
    made = ReleaseFolder(tmp_path / "data", older)
    yield made
    for stack in made.stacks:
        if stack.process.poll() is None:
            stack.kill_everything()
    assert all(stack.all_gone() for stack in made.stacks)


def test_an_upgrade_and_a_rollback_in_the_middle_of_a_resize_lose_nothing(folder: ReleaseFolder) -> None:
    older = folder.start(older=True)
    folder.use(older)
    folder.begin_resize(older, 32, older=True)
    older.kill_everything()

    present = folder.start(older=False)
    folder.check(present)
    folder.use(present)
    present.kill_everything()

    rolled_back = folder.start(older=True)
    folder.check(rolled_back)
    settled(rolled_back, 32)


@pytest.mark.deep
def test_changes_that_either_release_began_are_ended_by_the_other_there_and_back(folder: ReleaseFolder) -> None:
    counts = [32, 16, 8, 32]
    for turn, count in enumerate(counts):
        stack = folder.start(older=turn % 2 == 0)
        folder.check(stack)
        if turn:
            settled(stack, counts[turn - 1])
        folder.use(stack)
        folder.begin_resize(stack, count, older=turn % 2 == 0)
        stack.kill_everything()

    last = folder.start(older=True)
    folder.check(last)
    settled(last, counts[-1])
