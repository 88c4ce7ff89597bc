"""Send random direct invocations to the function's handler; none may cause an internal error.

    python -m dynashard_checks.fuzz --help

Events are drawn from a seed. Most are valid requests with one or two things wrong, the others are wrong throughout. An
event that causes an internal error is printed with its number, and `--seed N --from NUMBER --events 1` sends it again.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, Final

from dynashard import definition, schema
from dynashard.transport import connect
from dynashard_local.engine.process import running_engine
from dynashard_local.engine.tables import engine_client, ensure_tables, table_plans
from dynashard_local.settings import Settings
from dynashard_local.template import committed
from dynashard_serving.commands.answers import Commands
from dynashard_serving.commands.handler import Log, build_commands, logger
from dynashard_serving.domain import declared
from dynashard_serving.operations.served import NEEDS
from dynashard_serving.settings import ServingSettings

SHOWN: Final = 10
_STEP: Final = 10_000
_WEIRD: Final = (
    *(
        "",
        "a",
        "abc",
        "1",
        "0",
        "-1",
        "1e999999",
        "NaN",
        "null",
        "user.v1.User:abc:1",
        "a:b",
        "a/b",
        "..",
        "\x00",
        "\n",
    ),
    *(
        "\U0010ffff",
        "\U0001f600",
        "\ud800",
        "é",
        "e\u0301",
        "ß" * 200,
        "x" * 1100,
        "x" * 5000,
        "ordered",
        "desc",
        "by_email",
    ),
    *("2026-01-01", "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-45"),
)
_NUMBERS: Final = (
    0,
    1,
    -1,
    7,
    1000,
    10**9,
    10**18,
    2**63,
    10**38,
    10**39,
    -(10**126),
    10**399,
    10**401,
    0.1,
    -0.0,
    1e300,
    5e-324,
)
_OTHERS: Final[Sequence[Any]] = (
    None,
    True,
    False,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": {"b": [1, {}]}},
)
_RIGHT: Final[Mapping[str, Mapping[str, Any]]] = {
    "users": {"id": "1", "email": "ada@example.com", "display_name": "Ada", "department": "eng", "manager_id": "m"},
    "teams": {"team_id": "core", "name": "Core"},
    "members": {"team_id": "core", "user_id": "ada", "role": "member"},
    "overrides": {
        "team_id": "core",
        "schedule_id": "day",
        "override_id": "1",
        "user_id": "ada",
        "starts_at": "2026-01-01T00:00:00Z",
        "ends_at": "2026-01-01T08:00:00Z",
    },
    "escalation-policies": {"team_id": "core", "policy_id": "1", "steps": [{"targets": ["user_ada"]}]},
    "schedules": {"team_id": "core", "schedule_id": "day", "name": "Day"},
    "shifts": {
        "team_id": "core",
        "schedule_id": "day",
        "shift_id": "1",
        "user_id": "ada",
        "starts_at": "2026-01-01T00:00:00Z",
        "ends_at": "2026-01-01T08:00:00Z",
    },
    "contact-methods": {"user_id": "ada", "method_id": "1", "channel": "sms", "address": "+49"},
    "notification-rules": {"user_id": "ada", "rule_id": "1", "method_id": "1", "after_minutes": 5},
    "articles": {"author": "parth", "title": "On", "published_at": "2017-05-04T00:00:00Z", "year": 2017, "slug": "on"},
    "accesses": {"path": "/a", "accessed_at": "2026-01-01T00:00:00Z", "id": "1", "action": "read", "user_id": "ada"},
    "ordered-accesses": {
        "path": "/a",
        "accessed_at": "2026-01-01T00:00:00Z",
        "id": "1",
        "action": "read",
        "user_id": "ada",
    },
    "notifications": {"id": "3MPq27ik2ypKrhIqPOnUWjZAF6N", "user_id": "ada", "channel": "sms", "text": "Down"},
    "timed-accesses": {"path": "/a", "accessed_at": "2026-01-01T00:00:00Z", "action": "read", "user_id": "ada"},
    "pings": {
        "series": "s",
        "episode": "e",
        "at": "2026-11-21T12:00:00Z",
        "id": "1",
        "session_id": "1",
        "seconds": 60,
    },
    "incidents": {"id": "1", "number": 1, "title": "Down", "participants": ["user_1"], "details": {"a": [1, 2]}},
    "participations": {"incident_id": "1", "participant": "user_1"},
    "licensors": {"id": "1", "name": "One"},
    "licences": {"series": "s", "licensor_id": "1", "parts": 2},
    "operations": {"id": "1"},
}
"""The fields of a valid item, by the path of the entity."""
_SYSTEMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "follows": {
        "of": "User.9",
        "way": "forward",
        "type": "Actor",
        "order": "newest",
        "key": {"node": "a.1", "other": "b.1"},
    },
    "roll-ups": {
        "level": "day",
        "series": "s",
        "episode": "e",
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-02-01T00:00:00Z",
    },
    "revenue": {"month": "2026-01", "amount": 100},
    **{path: {"sort": {"team_id": "core"}, "partition": {"user_id": "ada"}} for path in ("on-call", "contacts")},
}


class Draw:
    """Draws random events.

    Args:
        random: the only source of randomness.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._exposed = {each.path: each for each in declared().entities if each.path in _RIGHT}

    def event(self) -> Any:
        """Return a direct invocation: valid except for a few changes, or wrong throughout."""
        if self._often(0.02):
            return self._value(3)
        event = self._system() if self._often(0.15) else self._right()
        for _ in range(self._random.choice((0, 1, 1, 2, 2, 3))):
            self._spoil(event)
        return event

    def _right(self) -> dict[str, Any]:
        random = self._random
        path = random.choice(list(self._exposed))
        exposed, fields = self._exposed[path], dict(_RIGHT[path])
        entity = definition(exposed.entity)
        key = {name: fields.get(name, "x") for name in entity.key_fields if name != "tenant_id"}
        partition = {name: fields.get(name, "x") for name in entity.partition_fields if name != "tenant_id"}
        operation = random.choice(list(NEEDS))
        choices: dict[str, dict[str, Any]] = {
            "create": {"item": fields},
            "get": {"key": key, "consistent": self._often(0.5)},
            "put": {"item": fields},
            "update": {"key": key, "patch": {name: fields[name] for name in random.sample(list(fields), 1)}},
            "delete": {"key": key},
            "list": {"partition": partition, "limit": random.choice((1, 50, 1000)), "order": random.choice(_ORDERS)},
            "count": {"partition": partition},
            "batch_get": {"keys": [key] * random.randrange(3)},
            "batch_write": {"put": [fields] * random.randrange(3), "delete": [key] * random.randrange(2)},
        }
        single = random.choices(_IN_BATCHES, k=random.randrange(4))
        requests = [{"operation": each, **choices[each]} for each in single]
        choices["batch"] = {"requests": requests}
        members = choices[operation]
        if operation in {"list", "count"} and entity.indexes and self._often(0.4):
            index = entity.indexes[random.choice(list(entity.indexes))]
            named = [name for name in index.partition.fields if name != "tenant_id"]
            members |= {"index": index.name, "partition": {name: fields.get(name, "x") for name in named}}
        if operation == "create" and self._often(0.3):
            members["idempotency_key"] = random.choice(("k", "k2", "x" * 300))
        return {"operation": operation, "entity": path, "tenant_id": "fuzz", **deepcopy(members)}

    def _system(self) -> dict[str, Any]:
        name = self._random.choice(list(_SYSTEMS))
        members = deepcopy(dict(_SYSTEMS[name]))
        kept = {member: members[member] for member in members if self._often(0.7)}
        operation = self._random.choice(("list", "get", "create", "delete", "count"))
        return {"operation": operation, "entity": name, "tenant_id": "fuzz", **kept}

    def _spoil(self, event: dict[str, Any]) -> None:
        """Change, add or remove one member at any depth."""
        place: Any = event
        while isinstance(place, dict) and place:
            inner = [value for value in place.values() if isinstance(value, dict) and value]
            if not inner or self._often(0.3):
                break
            place = self._random.choice(inner)
        name = self._random.choice(list(place)) if place and self._often(0.8) else self._name()
        if name in place and self._often(0.1):
            del place[name]
        else:
            place[name] = self._value(3)

    def _name(self) -> str:
        known = ("prefix", "from", "to", "cursor", "filters", "fields", "index", "direction", "distinct", "include")
        return self._random.choice((*known, "if_match", "sort", "tenant_id", "revision", "expires_at", *_WEIRD))

    def _often(self, share: float) -> bool:
        return self._random.random() < share

    def _value(self, depth: int) -> Any:
        if self._often(0.45) or depth == 0:
            return self._random.choice(_WEIRD)
        if self._often(0.35):
            return self._random.choice(_NUMBERS)
        if self._often(0.4):
            return deepcopy(self._random.choice(_OTHERS))
        if self._often(0.5):
            return [self._value(depth - 1) for _ in range(self._random.randrange(4))]
        return {self._name(): self._value(depth - 1) for _ in range(self._random.randrange(4))}


_IN_BATCHES: Final = ("get", "create", "put", "update", "delete")
_ORDERS: Final = ("round_robin", "ordered", "shard")


class Counting(Log):
    """A log that keeps internal errors."""

    def __init__(self, settings: ServingSettings) -> None:
        super().__init__(logger, settings)
        self.errors: list[Exception] = []

    def failed(self, error: Exception) -> None:
        """Keep an internal error."""
        self.errors.append(error)


def fuzz(commands: Commands, log: Counting, *, seed: int, first: int, events: int, say: Callable[[str], None]) -> int:
    """Send events. Return how many caused an internal error, an exception, or an answer that is not valid JSON.

    Args:
        commands: the function under test.
        log: the log of `commands`.
        seed: determines all events, together with their numbers.
        first: the number of the first event.
        events: how many are sent.
        say: called with each line of progress.
    """
    wrong, codes, begun = 0, Counter[str](), time.monotonic()
    for number in range(first, first + events):
        # Each event has a seed of its own, so it can be sent again without the events before it.
        event = Draw(Random(f"{seed} {number}")).event()
        del log.errors[:]
        reason = ""
        try:
            answer = commands.answer(event)
            json.dumps(answer).encode()
            code = "ok" if answer["ok"] else answer["error"]["code"]
            codes[code] += 1
            if code == "internal_error" or log.errors:
                reason = f"{code}: {log.errors[:1]!r}"
        except Exception as error:  # noqa: BLE001 - any exception is a finding
            reason = f"raised {error!r}"
        if reason:
            wrong += 1
            if wrong <= SHOWN:
                say(f"event {number}: {reason[:500]}\n  {json.dumps(event)[:1000]}")
        if (number - first + 1) % _STEP == 0:
            rate = (number - first + 1) / (time.monotonic() - begun)
            say(f"{number - first + 1} events, {wrong} internal errors, {rate:.0f} a second")
    say(", ".join(f"{code} {count}" for code, count in codes.most_common()))
    return wrong


def settings_of_template() -> ServingSettings:
    """Return settings of the function for the tables of the template."""
    names = {}
    for plan in table_plans(committed()):
        keys = [each["AttributeName"] for each in plan.create["KeySchema"]]
        names[keys[0]] = plan.name
    return ServingSettings(
        table=names[schema.PK],
        topology_table=names[schema.TOPOLOGY_KEY],
        idempotency_table=names[schema.IDEMPOTENCY_KEY],
        environment="local",
        growth_mode="off",
        cursor_keys=("a key that signs cursors",),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Send the events, and return 1 if one of them caused an internal error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first event")
    asked = parser.parse_args(arguments)
    settings = settings_of_template()
    log = Counting(settings)
    with (
        tempfile.TemporaryDirectory(prefix="dynashard-fuzz-") as folder,
        running_engine(Settings(data_dir=Path(folder), dynamodb_port=0)) as engine,
    ):
        ensure_tables(engine_client(engine.endpoint), table_plans(committed()), data=folder)
        transport = connect(engine.endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
        try:
            wrong = fuzz(
                build_commands(settings, transport, log=log),
                log,
                seed=asked.seed,
                first=asked.first,
                events=asked.events,
                say=lambda line: print(line, flush=True),
            )
        finally:
            transport.close()
    print(f"{asked.events} events of seed {asked.seed}: {wrong} internal errors")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
