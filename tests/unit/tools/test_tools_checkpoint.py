"""Checkpoints of a load: stored, read back, and refused for another load."""

import os
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from ksuid import Ksuid

from dynashard_tools.failure import CommandError
from dynashard_tools.load.checkpoint import Checkpoint, CheckpointFile

pytestmark = pytest.mark.unit

HERE, WHAT, WHOSE = "the local stack on .data", "User", "abc"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users.csv.load-state"


def begun() -> Checkpoint:
    return Checkpoint.beginning(HERE, WHAT, WHOSE, clock=lambda: 1_800_000_000.7)


def test_a_stored_checkpoint_is_read_back_unchanged(path: Path) -> None:
    kept = replace(begun(), line=700, fingerprint="f00", written=690, refused=10)

    CheckpointFile(path).keep(kept)

    assert CheckpointFile(path).open(HERE, WHAT, WHOSE, resume=True) == kept
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_load_without_a_checkpoint_begins_at_the_start(path: Path) -> None:
    found = CheckpointFile(path).open(HERE, WHAT, WHOSE, resume=False)

    assert (found.line, found.written, found.refused) == (0, 0, 0)


def test_an_unfinished_load_is_not_restarted_by_accident(path: Path) -> None:
    CheckpointFile(path).keep(begun())

    with pytest.raises(CommandError, match=r"did not finish: continue with --resume, or remove .*load-state"):
        CheckpointFile(path).open(HERE, WHAT, WHOSE, resume=False)


def test_there_is_nothing_to_resume_once_a_load_is_done(path: Path) -> None:
    state = CheckpointFile(path)
    state.keep(begun())
    state.remove()

    with pytest.raises(CommandError, match="no unfinished load to resume"):
        state.open(HERE, WHAT, WHOSE, resume=True)


def test_resuming_without_a_place_for_the_checkpoint_says_which_option_names_it() -> None:
    with pytest.raises(CommandError, match="--state"):
        CheckpointFile(None).open(HERE, WHAT, WHOSE, resume=True)


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
    ("target", "entity", "tenant"),
    [("the environment prod", WHAT, WHOSE), (HERE, "Note", WHOSE), (HERE, WHAT, "xyz"), (HERE, WHAT, None)],
)
def test_a_checkpoint_of_another_load_is_refused_and_named(
    path: Path, target: str, entity: str, tenant: str | None, *, resume: bool
) -> None:
    CheckpointFile(path).keep(begun())

    described = r"is of a load of User for tenant abc into the local stack on \.data: resume it there, or name another"
    with pytest.raises(CommandError, match=described):
        CheckpointFile(path).open(target, entity, tenant, resume=resume)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"null",
        orjson.dumps({"entity": WHAT, "tenant": WHOSE}),
        orjson.dumps({"target": HERE, "entity": WHAT, "tenant": WHOSE, "series": "a", "begun": 1}),
        orjson.dumps(
            {"target": HERE, "entity": WHAT, "tenant": WHOSE, "series": "a", "begun": 1, "line": "700",
             "fingerprint": "", "written": 0, "refused": 0}
        ),
    ],
)  # fmt: skip
def test_a_damaged_checkpoint_is_refused(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)

    with pytest.raises(CommandError, match="is damaged; remove it to start again"):
        CheckpointFile(path).open(HERE, WHAT, WHOSE, resume=True)


def test_an_unreadable_checkpoint_is_reported(path: Path) -> None:
    path.mkdir()

    with pytest.raises(CommandError, match="cannot be read: Is a directory"):
        CheckpointFile(path).open(HERE, WHAT, WHOSE, resume=True)


def test_a_checkpoint_that_cannot_be_stored_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot be written: .*; name another file with --state"):
        CheckpointFile(tmp_path / "missing" / "state").keep(begun())


def test_a_failed_write_of_a_checkpoint_keeps_the_previous_one(path: Path) -> None:
    state, kept = CheckpointFile(path), replace(begun(), line=500, fingerprint="f00", written=500, refused=0)
    state.keep(kept)
    path.with_name(f".{path.name}.{os.getpid()}.part").mkdir()

    with pytest.raises(CommandError):
        state.keep(replace(kept, line=1000, fingerprint="ba5", written=1000, refused=0))

    assert state.open(HERE, WHAT, WHOSE, resume=True) == kept


def test_a_line_has_one_id_in_one_load_and_another_in_the_next() -> None:
    load = begun()
    later = replace(load, line=700)

    ids = {load.id_of(line) for line in range(1000)}

    assert len(ids) == 1000
    assert load.id_of(7) == later.id_of(7)
    assert load.id_of(7) != begun().id_of(7)


def test_an_id_carries_the_time_at_which_the_load_began() -> None:
    found = Ksuid.from_base62(begun().id_of(7))

    assert len(str(found)) == 27
    assert found.datetime.timestamp() == 1_800_000_000
