"""Requests that read, list or count items, and batches, good and bad."""

from typing import Final

from tests.engine.serving.operations_data import (
    LAST_MONTH,
    OLD,
    PING,
    ping_at,
    user,
)
from tests.engine.serving.operations_row import HERE, KEY, NO_ADDRESS, bad, done, no, rows

READS: Final = [
    *rows(
        "users",
        "get",
        done("of what is there", {"key": KEY}, {"department": "eng"}, stored="people"),
        done("that sees every write", {"key": KEY, "consistent": True}, {"id": "ada"}, stored="people"),
        no("of nobody", "not_found", {"key": {"id": "zoe"}}, stored="people"),
        no("of what has expired", "not_found", {"key": {"id": "eve"}}, stored="people"),
    ),
    *rows(
        "articles",
        "get",
        done(
            "by a key of several fields",
            {"key": {"author": "amy", "year": 2017, "slug": "on"}},
            {"title": "On"},
            stored="press",
        ),
        done(
            "by a number as text",
            {"key": {"author": "amy", "year": "2017", "slug": "on"}},
            {"title": "On"},
            stored="press",
        ),
        bad(
            "by a year that is none",
            {"key": {"author": "amy", "year": "soon", "slug": "on"}},
            ways=NO_ADDRESS,
            year="int_parsing",
        ),
    ),
    *rows(
        "incidents",
        "get",
        done("without details", {"key": {"id": "i1"}}, {"title": "Down"}, stored="trouble"),
        done("with details", {"key": {"id": "i1"}, "include": ["details"]}, {"details": {"a": [1]}}, stored="trouble"),
        bad("with a field that is not an attachment", {"key": {"id": "i1"}, "include": ["title"]}, include="enum"),
    ),
    *rows(
        "pings",
        "get",
        done(
            "by a time",
            {"key": {"series": "s", "episode": "e", "at": "2026-11-21T12:00:00Z", "id": "p"}},
            {"id": "p"},
            stored="played",
        ),
    ),
    *rows(
        "participations",
        "get",
        done(
            "of a copy", {"key": {"incident_id": "i1", "participant": "user_ada"}}, {"state": "OPEN"}, stored="trouble"
        ),
    ),
]
_CHOSEN: Final = [
    done("of all", {}, 4, items=("ada", "bob", "cy", "dan")),
    done("that see every write", {"consistent": True}, 4, items=("ada", "bob", "cy", "dan")),
    done("by a prefix", {"prefix": "b"}, 1, items=("bob",)),
    done("from one to another", {"from": "b", "to": "dan"}, 2, items=("bob", "cy")),
    done("by a filter", {"filters": {"department": "eng"}}, 2, items=("ada", "bob")),
    done("by two filters", {"filters": {"department": "eng", "status": "active"}}, 1, items=("ada",)),
    done("by an index", {"index": "by_department", "partition": {"department": "eng"}}, 2, items=("ada", "bob")),
    done(
        "by two partitions of an index",
        {"index": "by_department", "partition": {"department": ["eng", "ops"]}},
        3,
        items=("ada", "bob", "cy"),
    ),
    done(
        "by an index and a filter",
        {"index": "by_manager", "partition": {"manager_id": "eve"}, "filters": {"status": "active"}},
        2,
        items=("ada", "cy"),
    ),
    done("by the sort key of an index", {"index": "by_email", "sort": {"email": "bob@example.com"}}, 1, items=("bob",)),
    bad("by an index there is not", {"index": "by_shoe"}, index="enum"),
    bad("by an index without its partition", {"index": "by_department"}, department="missing"),
    no(
        "by a partition that divides keys",
        "validation_failed",
        {"index": "by_department", "partition": {"department": ""}},
        {"department": "string_too_short"},
    ),
    bad("by an index that cannot be consistent", {"index": "by_email", "consistent": True}, consistent="invalid_query"),
    bad("by a filter there is not", {"filters": {"display_name": "a"}}, display_name="unknown_parameter"),
    bad("by a filter that is none of its values", {"filters": {"status": "asleep"}}, status="enum"),
    bad("by an empty prefix", {"prefix": ""}, prefix="invalid_query"),
    bad("by a prefix and a range before it", {"prefix": "b", "to": "b"}, to="contradiction"),
    bad("by a prefix and a range after it", {"prefix": "a", "from": "b"}, {"from": "contradiction"}),
    bad("by a range the wrong way round", {"from": "b", "to": "a"}, to="invalid_query"),
    bad(
        "by a sort key and a prefix",
        {"index": "by_email", "sort": {"email": "a@b.c"}, "prefix": "b"},
        {"prefix": "contradiction"},
    ),
    bad(
        "by a sort key and a range without it",
        {"index": "by_email", "sort": {"email": "a@b.c"}, "from": "b"},
        {"from": "contradiction"},
    ),
    bad(
        "by a sort key that is none of its values",
        {"index": "by_email", "sort": {"email": "nobody"}},
        email="string_pattern_mismatch",
    ),
]
LISTS: Final = [
    *rows(
        "users",
        "list",
        *({**case, "stored": "people", "result": {}} for case in _CHOSEN),
        done("in order", {"order": "ordered"}, items=("ada", "bob", "cy", "dan"), stored="people"),
        done(
            "in reverse order",
            {"order": "ordered", "direction": "desc"},
            items=("dan", "cy", "bob", "ada"),
            stored="people",
        ),
        done("of shard after shard", {"order": "shard"}, items=("ada", "bob", "cy", "dan"), stored="people"),
        done("of two a page", {"order": "ordered", "limit": 2}, items=("ada", "bob"), stored="people"),
        done("of two a page, shard by shard", {"limit": 2}, stored="people"),
        done("of the most a page", {"limit": 1000}, items=("ada", "bob", "cy", "dan"), stored="people"),
        done(
            "of some fields",
            {"order": "ordered", "limit": 1, "fields": ["id", "status", "id"]},
            {"items": [{"id": "ada", "status": "active"}]},
            stored="people",
        ),
        *(bad(f"of {limit} a page", {"limit": limit}, limit="out_of_range") for limit in (0, -1, 1001, "ten")),
        bad("in an order there is not", {"order": "random"}, order="enum"),
        bad("in a direction there is not", {"direction": "down"}, direction="enum"),
        bad("of a field there is not", {"fields": ["id", "shoe"]}, fields="enum"),
        bad("of no field", {"fields": []}, fields="enum"),
        bad("with a member there is not", {"page": 1}, page="unknown_parameter"),
        no("with a cursor that is none", "invalid_cursor", {"cursor": "abc"}, stored="people"),
    ),
    *rows(
        "articles",
        "list",
        done("of a partition", {"partition": {"author": "amy", "year": 2017}}, items=("on", "off"), stored="press"),
        done(
            "of several partitions",
            {"partition": {"author": "amy", "year": [2017, 2018]}, "order": "ordered"},
            items=("off", "on", "up"),
            stored="press",
        ),
        done(
            "of each with each",
            {"partition": {"author": ["amy", "ben"], "year": [2017, 2018]}},
            items=("off", "on", "up", "low"),
            stored="press",
        ),
        done(
            "of a day",
            {"index": "by_date", "partition": {"author": "amy", "year": 2017}, "sort": {"published_at": "2017-05-04"}},
            items=("on", "off"),
            stored="press",
        ),
        bad("of half a partition", {"partition": {"year": 2017}}, author="missing"),
        bad("of no partition", {}, author="missing", year="missing"),
        bad("of a year that is none", {"partition": {"author": "amy", "year": "soon"}}, year="int_parsing"),
        bad(
            "of too many partitions",
            {"partition": {"author": [f"a{n}" for n in range(11)], "year": list(range(2000, 2011))}},
            partition="out_of_range",
        ),
        no(
            "of an author that divides keys",
            "invalid_key",
            {"partition": {"author": "a:b", "year": 2017}},
            {"author": "invalid_key"},
        ),
        bad(
            "of a day that is none",
            {"index": "by_date", "partition": {"author": "amy", "year": 2017}, "sort": {"published_at": "x"}},
            published_at="datetime_from_date_parsing",
        ),
    ),
    *rows(
        "participations",
        "list",
        done("of the table", {"partition": {"incident_id": "i1"}}, items=("user_ada", "team_core"), stored="trouble"),
        done(
            "of the index whose partition is given",
            {"partition": {"participant": "user_ada"}},
            items=("user_ada", "user_ada"),
            stored="trouble",
        ),
        done(
            "of that index by the sort key",
            {"partition": {"participant": "user_ada"}, "sort": {"state": "OPEN"}},
            items=("user_ada",),
            stored="trouble",
        ),
        done(
            "of each thing once",
            {
                "partition": {"participant": ["user_ada", "team_core"]},
                "sort": {"state": "OPEN"},
                "distinct": "incident_id",
                "order": "ordered",
            },
            items=("team_core",),
            stored="trouble",
        ),
        bad(
            "of a participant that is none",
            {"partition": {"participant": "ada"}},
            participant="string_pattern_mismatch",
        ),
        bad(
            "of each value of a field without values",
            {"partition": {"participant": "user_ada"}, "distinct": "title"},
            distinct="enum",
        ),
        bad("of nothing", {}, incident_id="missing"),
        no(
            "behind a missing field",
            "invalid_key",
            {"partition": {"participant": "user_ada"}, "sort": {"since": "2026-11-01"}},
            {"state": "invalid_key"},
        ),
    ),
    *rows(
        "pings",
        "list",
        done(
            "of an episode's day",
            {"partition": {"series": "s", "episode": "e", "at": "2026-11-21"}},
            items=("p",),
            stored="played",
        ),
        done("of the index of a day", {"partition": {"at": "2026-11-21"}}, items=("p", "q"), stored="played"),
        bad("of a day of another age", {"partition": {"at": "1999-11-21"}}, at="value_error"),
    ),
    *rows(
        "incidents",
        "list",
        done("without details", {}, items=("i1",), stored="trouble"),
        bad("of details", {"fields": ["id", "details"]}, fields="enum"),
    ),
    *rows(
        "on-call",
        "list",
        done(
            "of an account",
            {},
            items=["team.v1.Team"] * 2 + ["team.v1.Schedule", "team.v1.Shift", "team.v1.Override"],
            stored="on-call",
        ),
        done(
            "of a schedule",
            {"sort": {"team_id": "core", "schedule_id": "day"}},
            items=("team.v1.Schedule", "team.v1.Shift", "team.v1.Override"),
            stored="on-call",
        ),
        bad("of a schedule of no team", {"sort": {"schedule_id": "day"}}, team_id="missing"),
        bad("of a part and a prefix", {"sort": {"team_id": "core"}, "prefix": "x"}, prefix="contradiction"),
        bad("of too many a page", {"limit": 1001}, limit="out_of_range"),
    ),
    *rows(
        "contacts",
        "list",
        done(
            "of a user",
            {"partition": {"user_id": "ada"}},
            items=("contact.v1.ContactMethod", "contact.v1.NotificationRule"),
            stored="on-call",
        ),
        done(
            "of two users",
            {"partition": {"user_id": ["ada", "bob"]}, "direction": "asc"},
            items=["contact.v1.ContactMethod"] * 2 + ["contact.v1.NotificationRule"],
            stored="on-call",
        ),
        bad("of nobody", {}, user_id="missing"),
    ),
]
SYSTEMS: Final = [
    *rows(
        "follows",
        "list",
        done("of nobody", {"of": "User.1"}, items=()),
        done(
            "of followers, newest first",
            {"of": "User.1", "way": "backward", "type": "User", "order": "newest"},
            items=(),
        ),
        bad("of no node", {}, of="missing"),
        no("of an invalid node", "invalid_value", {"of": "nobody"}, {"of": "invalid_value"}),
        bad("of a long node", {"of": "User." + "x" * 200}, of="string_too_long"),
        bad("a way there is not", {"of": "User.1", "way": "up"}, way="literal_error"),
        bad("newest first of any type", {"of": "User.1", "order": "newest"}, type="invalid_query"),
        bad("of too many a page", {"of": "User.1", "limit": 1001}, limit="less_than_equal"),
        bad("with a member there is not", {"of": "User.1", "page": 1}, page="unknown_parameter"),
    ),
    *rows(
        "roll-ups",
        "list",
        bad("of no time", {}, {"level": "missing", "from": "missing", "to": "missing"}),
        no(
            "of a time the wrong way round",
            "invalid_query",
            {"level": "hour", "from": "2026-11-21", "to": "2026-11-20"},
            {"to": "invalid_query"},
        ),
        bad(
            "of a level there is not", {"level": "eon", "from": "2026-11-20", "to": "2026-11-21"}, level="literal_error"
        ),
    ),
]
COUNTS: Final = rows("users", "count", *({**case, "stored": "people", "items": None} for case in _CHOSEN))
BATCHES: Final = [
    *rows(
        "users",
        "batch_get",
        done(
            "of some that are there",
            {"keys": [{"id": "ada"}, {"id": "zoe"}, {"id": "eve"}, {"id": "bob"}]},
            stored="people",
        ),
        done("that sees every write", {"keys": [{"id": "ada"}], "consistent": True}, stored="people"),
        done("of nothing", {"keys": []}, [], stored="people"),
    ),
    *rows(
        "users",
        "batch_write",
        done("of some that are good", {"put": [user(), user(id="bob", email=7), user(id="cy", shoe=1)]}),
        done("of what has expired", {"put": [user(expires_at="2026-11-21T11:00:00Z")]}),
        done("of an id that no URL carries", {"put": [user(id=".."), user()]}),
        done("of deletes", {"put": [user(id="bob")], "delete": [{"id": "ada"}, {"id": "zoe"}]}, given=HERE),
        done("of another tenant's", {"put": [user(tenant_id="other")]}),
    ),
    *rows(
        "pings",
        "batch_write",
        done("of times in and out of the window", {"put": [PING, {**OLD, "id": "q"}, ping_at("2026-11-21T13:00:00Z")]}),
        done("over what is old", {"put": [{**OLD, "seconds": 5}]}, given=LAST_MONTH),
    ),
]
