"""Writes the teams of a company and how they are reached, always the same. `python examples/make_on_call.py`."""

import csv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path

FOLDER = Path(__file__).parent
TEAMS = {"core": "Core services", "web": "Web", "data": "Data", "mobile": "Mobile", "billing": "Billing"}
FIRST_DAY = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
DAYS = 14
PEOPLE_A_TEAM = 4


def main() -> None:
    """Write the files."""
    with (FOLDER / "users.csv").open(encoding="utf-8") as file:
        people = list(islice(csv.DictReader(file), len(TEAMS) * PEOPLE_A_TEAM))
    crews = {team: people[i :: len(TEAMS)] for i, team in enumerate(TEAMS)}
    _write("teams.csv", ["team_id", "name"], TEAMS.items())
    schedules = [(team, name, f"{TEAMS[team]}, {name}") for team in TEAMS for name in ("day", "night")]
    _write("schedules.csv", ["team_id", "schedule_id", "name"], schedules)
    turn = ["user_id", "starts_at", "ends_at"]
    shifts = [row for team, schedule, _ in schedules for row in _shifts(team, schedule, crews[team])]
    _write("shifts.csv", ["team_id", "schedule_id", "shift_id", *turn], shifts)
    stand_ins = [(team, "day", "o1", crew[-1]["id"], *_span(3, 13, 4)) for team, crew in crews.items()]
    _write("overrides.csv", ["team_id", "schedule_id", "override_id", *turn], stand_ins)
    methods = [(person["id"], "mail", "email", person["email"]) for person in people]
    methods += [(person["id"], "phone", "sms", f"+49 30 {10000 + i}") for i, person in enumerate(people)]
    _write("contact-methods.csv", ["user_id", "method_id", "channel", "address"], methods)
    rules = [(person["id"], "r1", "mail", "any", 0) for person in people]
    rules += [(person["id"], "r2", "phone", "critical", 5) for person in people]
    _write("notification-rules.csv", ["user_id", "rule_id", "method_id", "severity", "after_minutes"], rules)


def _shifts(team: str, schedule: str, crew: Sequence[dict[str, str]]) -> Iterable[Sequence[object]]:
    begin = 0 if schedule == "day" else 12
    for day, person in zip(range(DAYS), cycle(crew), strict=False):
        yield (team, schedule, f"d{day:02d}", person["id"], *_span(day, begin, 12))


def _span(day: int, hour: int, hours: int) -> tuple[str, str]:
    begin = FIRST_DAY + timedelta(days=day, hours=hour)
    return begin.isoformat(), (begin + timedelta(hours=hours)).isoformat()


def _write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (FOLDER / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
