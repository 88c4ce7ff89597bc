"""Writes `users.csv`: a thousand users of one company, always the same. `python examples/make_users.py`."""

import csv
import random
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from ksuid import Ksuid

COUNT = 1000
SEED = 1815
FIRST_DAY = datetime(2024, 1, 8, 9, 0, tzinfo=UTC)
# fmt: off
FIRST_NAMES = (
    "Ada", "Alan", "Amara", "Anika", "Aoife", "Barbara", "Björn", "Carlos", "Chidi", "Chloé", "Claude",
    "Daniela", "Dmitri", "Edsger", "Elif", "Emeka", "Fatima", "Frances", "Giulia", "Grace", "Hana", "Hedy",
    "Hiroshi", "Ines", "Ingrid", "Ivan", "Jamal", "Jean", "Jorge", "Kenji", "Kofi", "Laila", "Leila", "Linus",
    "Lucía", "Margaret", "Mei", "Mohammed", "Nadia", "Niklaus", "Noor", "Olga", "Oluwaseun", "Priya", "Radia",
    "Rosa", "Satoshi", "Shafi", "Sofía", "Søren", "Tariq", "Tim", "Ursula", "Wei", "Yuki", "Zoë",
)
LAST_NAMES = (
    "Abara", "Andersen", "Bianchi", "Castillo", "Chen", "Dijkstra", "Dubois", "Eriksen", "Fernández",
    "Fischer", "García", "Goldberg", "Hamilton", "Haddad", "Hopper", "Ibrahim", "Ito", "Jansen", "Kahn",
    "Kaya", "Keller", "Kim", "Kowalski", "Lamarr", "Lovelace", "Mbeki", "Moreau", "Müller", "Nakamura",
    "Novák", "Okafor", "Olsen", "Patel", "Perlman", "Petrov", "Rossi", "Santos", "Sato", "Schmidt", "Silva",
    "Singh", "Suzuki", "Tanaka", "Turing", "Wang", "Weber", "Wirth", "Yilmaz", "Zhang",
)
# fmt: on
DEPARTMENTS = {"engineering": 9, "sales": 6, "support": 5, "operations": 3, "finance": 2, "people": 2, "legal": 1}


def main() -> None:
    """Write the file."""
    source = random.Random(SEED)
    taken: dict[str, int] = {}
    managers: dict[str, str] = {}
    with (Path(__file__).parent / "users.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "email", "display_name", "department", "manager_id", "status"])
        for number in range(COUNT):
            joined = FIRST_DAY + timedelta(minutes=number * 61)
            identity = str(Ksuid(joined, blake2b(f"{SEED}:{number}".encode(), digest_size=16).digest()))
            first, last = source.choice(FIRST_NAMES), source.choice(LAST_NAMES)
            [department] = source.choices(list(DEPARTMENTS), list(DEPARTMENTS.values()))
            local = f"{first}.{last}".lower().replace("ø", "o").encode("ascii", "ignore").decode()
            taken[local] = taken.get(local, 0) + 1
            email = f"{local}{taken[local] if taken[local] > 1 else ''}@example.com"
            [status] = source.choices(["active", "disabled"], [19, 1])
            writer.writerow([identity, email, f"{first} {last}", department, managers.get(department, ""), status])
            managers.setdefault(department, identity)


if __name__ == "__main__":
    main()
