"""Change the code of a room in one small way at a time, and see whether the room's nearest tests notice.

Runs in `.venv-mutants`. Everything happens in a copy of the checkout below `build/mutants`.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from cosmic_ray.commands import execute, init
from cosmic_ray.config import ConfigDict
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

from packages.checkout import PACKAGES

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = Path(__file__).with_name("rooms.toml")
LIBRARY: Final = "layers/sharding/python/dynashard"
SECONDS: Final = 60
"""One test may take so many seconds. One that goes on for ever then fails, so its change counts as noticed."""
TIMES: Final = 8
"""A run of the tests may take so many times as long as on unchanged code; longer counts as noticed, too."""
OPTIONS: Final = f"-n 0 -q -x -p no:cacheprovider --hypothesis-profile=dynashard-unshrunk --timeout={SECONDS}"
Change = tuple[str, str, str]
"""A module, an operator, and the place in the module, counted among those that the operator can change."""


def copied(room: str) -> Path:
    """Return a fresh copy of what git tracks, with links to what was installed."""
    copy = ROOT / "build" / "mutants" / room
    shutil.rmtree(copy, ignore_errors=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S607
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for name in (".venv", ".venv-node", "node_modules"):
        if (ROOT / name).exists():
            (copy / name).symlink_to(ROOT / name)
    return copy


def choose(session: WorkDB, operators: list[str], size: int, noticed: set[Change]) -> int:
    """Leave a sample of the changes by these operators to be tried, and return how many there were.

    The sample depends on the code and the operators alone, so that two runs try the same changes. Those that were
    `noticed` before are not tried again.
    """
    wanted = re.compile("|".join(operators))
    items = {change_of(item.mutations[0]): item for item in session.work_items}
    kept = sorted(
        key
        for key, item in items.items()
        if wanted.fullmatch(key[1].removeprefix("core/")) and compiles(item.mutations[0])
    )
    sample = set(random.Random(27).sample(kept, min(size, len(kept))))
    skipped = [item.job_id for key, item in items.items() if key not in sample]
    session.set_multiple_results(skipped, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))
    killed = WorkResult(worker_outcome=WorkerOutcome.NORMAL, test_outcome=TestOutcome.KILLED)
    session.set_multiple_results([items[key].job_id for key in sample & noticed], killed)
    return len(kept)


def compiles(mutation: Any) -> bool:
    """Whether Python accepts the change. Any test notices one that it does not accept, such as `/` for a bare `*`."""
    if "BinaryOperator" not in mutation.operator_name:
        return True
    operator = get_operator(mutation.operator_name)()
    code = mutate_code(mutation.module_path.read_text("utf-8"), operator, mutation.occurrence)
    try:
        compile(code, str(mutation.module_path), "exec")
    except SyntaxError:
        return False
    return True


def change_of(mutation: Any) -> Change:
    """Return what names a change in the same way in each run."""
    return str(mutation.module_path), mutation.operator_name, f"{mutation.occurrence:05}"


def kept_of(name: str, modules: list[Path]) -> Path:
    """Return the file that keeps which changes of this very code were noticed."""
    code = sha256("\0".join(path.read_text("utf-8") for path in modules).encode()).hexdigest()
    return ROOT / "build" / "mutants" / f"{name}-{code[:16]}.json"


def main() -> None:
    """Try the changes of one room, and print how many were noticed and which were not."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("room")
    parser.add_argument("--again", action="store_true", help="try what the last run on the same code left unnoticed")
    table = tomllib.loads(TABLE.read_text())
    arguments = parser.parse_args()
    name = arguments.room
    if name not in table["rooms"]:
        sys.exit(f"{name!r} is not a room of {TABLE.relative_to(ROOT)}. It has: {', '.join(table['rooms'])}.")
    room = table["rooms"][name]
    copy = copied(name)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = os.pathsep.join(str(copy / folder) for folder in PACKAGES)
    # The first run, on the unchanged copy, stores bytecode for the others. Changed files are newer: they are compiled
    # again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tests = f"{ROOT}/.venv/bin/python -m pytest {OPTIONS} {' '.join(room['tests'])}"
    begun = time.monotonic()
    subprocess.run(tests.split(), check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - an unchanged copy passes
    seconds = max(SECONDS, TIMES * (time.monotonic() - begun))
    modules = list(find_modules([Path(LIBRARY) / path for path in room["code"]]))
    config = ConfigDict({"test-command": tests, "timeout": seconds, "distributor": ConfigDict(name="local")})
    kept = kept_of(name, modules)
    before = set(map(tuple, json.loads(kept.read_text()))) if arguments.again and kept.exists() else set()
    with use_db(str(copy / "session.sqlite")) as session:
        init(modules, session, {})
        found = choose(session, table["operators"], room["sample"], before)
        execute(session, config)
        noticed = report(session, name, found)
    kept.write_text(json.dumps(sorted(noticed)))


def code_of() -> dict[str, str]:
    """Return which code the figures are of."""
    git = ["git", "show", "-s", "--format=%h %cs"]
    shown = subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603 - without anything from elsewhere
    commit, date = shown.stdout.split()
    return {"commit": commit, "date": date}


def report(session: WorkDB, name: str, found: int) -> set[Change]:
    """Print the figures for `rooms.toml`, and each change that no test noticed. Return those that one noticed."""
    tried = [(item, result) for item, result in session.completed_work_items if result.test_outcome is not None]
    survived = [pair for pair in tried if pair[1].test_outcome == TestOutcome.SURVIVED]
    for item, result in survived:
        mutation = item.mutations[0]
        changed = [line for line in result.diff.splitlines() if re.match(r"[-+](?![-+])", line)]
        print(f"{mutation.module_path}:{mutation.start_pos[0]} {mutation.definition_name} {mutation.operator_name}")  # noqa: T201
        print("\n".join(f"    {line}" for line in changed))  # noqa: T201
    noticed = len(tried) - len(survived)
    figures = {"found": found, "tried": len(tried), "noticed": noticed, **code_of()}
    print(f"{name}: {json.dumps(figures)}, {noticed / max(len(tried), 1):.0%}")  # noqa: T201
    return {change_of(item.mutations[0]) for item, result in tried if result.test_outcome == TestOutcome.KILLED}


if __name__ == "__main__":
    main()
