"""Writes a company's incidents and who touched its files, always the same. `python examples/make_incidents.py`."""

import csv
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TEAMS = ("core", "web", "data", "mobile", "billing")
WHAT = ("Errors above 2%", "Latency doubled", "Queue grows", "Disk nearly full", "Certificate expires", "Jobs late")
FILES = ("/shared/plans.txt", "/shared/budget.csv", "/home/ada/notes.txt", "/releases/4.2/README")
POPULAR = "/shared/menu.txt"
INCIDENTS, OPEN, ACCESSES, SEED = 60, 12, 300, 1815
FIRST_DAY = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


def main() -> None:
    """Write the files."""
    source = random.Random(SEED)
    with (FOLDER / "users.csv").open(encoding="utf-8") as file:
        people = [row["id"] for row in islice(csv.DictReader(file), 20)]
    with (FOLDER / "incidents.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in _incidents(source, people))
    accesses = list(_accesses(source, people))
    header = ["path", "accessed_at", "action", "user_id"]
    for name, more in (("timed-accesses.csv", []), ("accesses.csv", ["id"])):
        with (FOLDER / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*header, *more])
            writer.writerows([*row, *([f"a{number:03d}"] if more else [])] for number, row in enumerate(accesses))


def _incidents(source: random.Random, people: list[str]) -> Iterator[dict[str, Any]]:
    for number in range(1, INCIDENTS + 1):
        team, helpers = source.choice(TEAMS), source.sample(people, source.randint(1, 3))
        begins = FIRST_DAY + timedelta(hours=number * 2)
        open_ = number > INCIDENTS - OPEN
        incident = {
            "id": f"inc-{number:04d}",
            "number": number,
            "title": source.choice(WHAT),
            "team": f"team_{team}",
            "participants": [f"user_{each}" for each in helpers],
            "details": {"timeline": _timeline(source, begins, helpers)[: 2 if open_ else None]},
        }
        closed = {"status": "RESOLVED", "state": "CLOSED", "closed_at": (begins + timedelta(minutes=75)).isoformat()}
        yield incident if open_ else {**incident, **closed}


def _timeline(source: random.Random, begins: datetime, helpers: list[str]) -> list[dict[str, str]]:
    said = ("Looking into it.", "Rolled back.", "Scaled out.", "Back to normal.")
    return [
        {"at": (begins + timedelta(minutes=15 * step)).isoformat(), "by": source.choice(helpers), "said": text}
        for step, text in enumerate(said)
    ]


def _accesses(source: random.Random, people: list[str]) -> Iterator[tuple[str, ...]]:
    for number in range(ACCESSES):
        path = source.choice(FILES) if number % 3 == 0 else POPULAR
        action = source.choices(("read", "write", "share"), (8, 2, 1))[0]
        yield path, (FIRST_DAY + timedelta(seconds=number * 40)).isoformat(), action, source.choice(people)


if __name__ == "__main__":
    main()
