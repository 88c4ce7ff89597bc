"""Requests that replace, change or delete an item, good and bad."""

from typing import Final

from tests.engine.serving.operations_data import (
    INCIDENT,
    LAST_MONTH,
    OLD,
    PING,
    PINGED,
    USED,
    ping_at,
    user,
)
from tests.engine.serving.operations_row import GONE, HERE, KEY, NO_ADDRESS, bad, done, no, rows

PUTS: Final = [
    *rows(
        "users",
        "put",
        done("that creates", {"item": user()}, {"created": True, "display_name": "Ada"}),
        done("that replaces", {"item": user()}, {"created": False, "department": None}, given=HERE),
        done(
            "of what was read",
            {"item": user(created_at="2026-01-01T00:00:00Z", revision="x")},
            {"created": False},
            given=HERE,
        ),
        done("over what has expired", {"item": user()}, {"created": True}, given=GONE),
        bad("without a required field", {"item": {"id": "ada", "email": "a@b.c"}}, display_name="missing"),
        bad("with an unknown field", {"item": user(shoe=7)}, shoe="extra_forbidden"),
        bad("with a number for text", {"item": user(email=7)}, email="string_type"),
        bad("of another tenant", {"item": user(tenant_id="other")}, tenant_id="immutable"),
        bad("under an id that no URL carries", {"item": user(id="..")}, id="unaddressable"),
        bad("that has expired", {"item": user(expires_at="2026-11-21T12:00:00Z")}, expires_at="datetime_future"),
        bad(
            "that has expired over another",
            {"item": user(expires_at="2026-11-21T12:00:00Z")},
            given=HERE,
            expires_at="datetime_future",
        ),
        done("at the stored revision", {"item": user(), "if_match": "current"}, {"created": False}, given=HERE),
        no("at another revision", "revision_mismatch", {"item": user(), "if_match": "stale"}, given=HERE),
        no("at a revision of nothing", "revision_mismatch", {"item": user(), "if_match": "stale"}),
        done("at any revision", {"item": user(), "if_match": "*"}, {"created": False}, given=HERE),
        no("at any revision of nothing", "revision_mismatch", {"item": user(), "if_match": "*"}),
        done("guarded", {"item": user(), "handling": "guarded"}, {"created": False}, given=HERE),
        done("exactly once", {"item": user(), "handling": "exactly-once"}, {"created": True}),
    ),
    *rows(
        "pings",
        "put",
        done("that creates within the window", {"item": PING}, {"created": True}),
        done(
            "that replaces within the window",
            {"item": {**PING, "seconds": 30}},
            {"created": False, "seconds": 30},
            given=PINGED,
        ),
        bad("that creates what is too old", {"item": OLD}, at="outside_window"),
        bad(
            "that creates what is too far ahead",
            {"item": ping_at("2026-11-21T13:00:00Z")},
            ways={"leave": ("key_too_far_ahead", {"at": "key_too_far_ahead"})},
            at="outside_window",
        ),
        done(
            "that replaces what is old",
            {"item": {**OLD, "seconds": 30}},
            {"created": False, "seconds": 30},
            given=LAST_MONTH,
        ),
        done(
            "of what is old at its revision", {"item": OLD, "if_match": "current"}, {"created": False}, given=LAST_MONTH
        ),
        done("of what is old at any revision", {"item": OLD, "if_match": "*"}, {"created": False}, given=LAST_MONTH),
        no(
            "of what is old at another revision",
            "revision_mismatch",
            {"item": OLD, "if_match": "stale"},
            given=LAST_MONTH,
        ),
        no("of nothing old at any revision", "revision_mismatch", {"item": OLD, "if_match": "*"}),
        done("of what is old, guarded", {"item": OLD, "handling": "guarded"}, {"created": False}, given=LAST_MONTH),
    ),
    *rows(
        "articles",
        "put",
        done(
            "under a key of several fields",
            {
                "item": {
                    "author": "amy",
                    "year": 2017,
                    "slug": "on",
                    "title": "On",
                    "published_at": "2017-05-04T00:00:00Z",
                }
            },
            {"created": True},
        ),
    ),
    *rows(
        "licensors",
        "put",
        done(
            "of what keeps no stamps",
            {"item": {"id": "acme", "name": "Acme"}},
            {"created": False, "name": "Acme"},
            given=(("licensors", {"id": "acme", "name": "A"}),),
        ),
    ),
    *rows(
        "incidents",
        "put",
        done(
            "without details takes them away",
            {"item": {**INCIDENT, "title": "New"}},
            {"created": False},
            given=(("incidents", {**INCIDENT, "details": 1}),),
        ),
    ),
    *rows("accesses", "put", no("of what is only added", "method_not_allowed", {"item": {**USED, "id": "1"}})),
]

UPDATES: Final = [
    *rows(
        "users",
        "update",
        done(
            "of one field",
            {"key": KEY, "patch": {"display_name": "Countess"}},
            {"display_name": "Countess", "department": "eng"},
            given=HERE,
        ),
        done("that resets a field", {"key": KEY, "patch": {"department": None}}, {"department": None}, given=HERE),
        done("of nothing", {"key": KEY, "patch": {}}, {"department": "eng"}, given=HERE),
        done("that repeats the id", {"key": KEY, "patch": {"id": "ada"}}, {"id": "ada"}, given=HERE),
        done(
            "with what the server sets",
            {"key": KEY, "patch": {"created_at": "x", "revision": 7}},
            {"id": "ada"},
            given=HERE,
        ),
        bad("of an unknown field", {"key": KEY, "patch": {"shoe": 7}}, given=HERE, shoe="extra_forbidden"),
        bad("with a number for text", {"key": KEY, "patch": {"email": 7}}, given=HERE, email="string_type"),
        bad("with no address", {"key": KEY, "patch": {"email": "nobody"}}, given=HERE, email="string_pattern_mismatch"),
        bad("with a state there is not", {"key": KEY, "patch": {"status": "asleep"}}, given=HERE, status="enum"),
        bad("that takes away what is required", {"key": KEY, "patch": {"email": None}}, given=HERE, email="missing"),
        bad(
            "with two faults",
            {"key": KEY, "patch": {"email": 7, "shoe": 7}},
            given=HERE,
            email="string_type",
            shoe="extra_forbidden",
        ),
        bad("that moves the item", {"key": KEY, "patch": {"id": "bob"}}, given=HERE, id="immutable"),
        bad(
            "that gives it to another tenant",
            {"key": KEY, "patch": {"tenant_id": "other"}},
            given=HERE,
            tenant_id="immutable",
        ),
        no("of nobody", "not_found", {"key": KEY, "patch": {"display_name": "x"}}),
        bad("of nobody that is wrong anyway", {"key": KEY, "patch": {"shoe": 7}}, shoe="extra_forbidden"),
        no("of what has expired", "not_found", {"key": KEY, "patch": {}}, given=GONE),
        done(
            "at the stored revision",
            {"key": KEY, "patch": {"department": "ops"}, "if_match": "current"},
            {"department": "ops"},
            given=HERE,
        ),
        no("at another revision", "revision_mismatch", {"key": KEY, "patch": {}, "if_match": "stale"}, given=HERE),
        done("at any revision", {"key": KEY, "patch": {}, "if_match": "*"}, {"id": "ada"}, given=HERE),
        no("of nobody at any revision", "not_found", {"key": KEY, "patch": {}, "if_match": "*"}),
        bad(
            "that expires it",
            {"key": KEY, "patch": {"expires_at": "2026-11-21T11:00:00Z"}},
            given=HERE,
            expires_at="datetime_future",
        ),
        bad(
            "that expires nobody",
            {"key": KEY, "patch": {"expires_at": "2026-11-21T11:00:00Z"}},
            expires_at="datetime_future",
        ),
        done(
            "that has it expire later",
            {"key": KEY, "patch": {"expires_at": "2026-11-22T00:00:00Z"}},
            {"id": "ada"},
            given=HERE,
        ),
        done(
            "guarded",
            {"key": KEY, "patch": {"department": "ops"}, "handling": "guarded"},
            {"department": "ops"},
            given=HERE,
        ),
    ),
    *rows(
        "pings",
        "update",
        done(
            "of what lies outside of the window",
            {"key": {n: OLD[n] for n in ("series", "episode", "at", "id")}, "patch": {"seconds": 5}},
            {"seconds": 5},
            given=LAST_MONTH,
        ),
        bad(
            "of its time",
            {"key": {n: OLD[n] for n in ("series", "episode", "at", "id")}, "patch": {"at": "2026-11-21T12:00:00Z"}},
            given=LAST_MONTH,
            at="immutable",
        ),
    ),
    *rows(
        "shifts",
        "update",
        bad(
            "that ends it before it starts",
            {
                "key": {"team_id": "core", "schedule_id": "day", "shift_id": "1"},
                "patch": {"ends_at": "2026-11-20T00:00:00Z"},
            },
            given=(
                (
                    "shifts",
                    {
                        "team_id": "core",
                        "schedule_id": "day",
                        "shift_id": "1",
                        "user_id": "ada",
                        "starts_at": "2026-11-21T08:00:00Z",
                        "ends_at": "2026-11-21T16:00:00Z",
                    },
                ),
            ),
            **{"": "value_error"},
        ),
    ),
    *rows(
        "incidents",
        "update",
        done(
            "of details",
            {"key": {"id": "i1"}, "patch": {"details": {"b": 2}}},
            {"title": "Down"},
            given=(("incidents", {**INCIDENT, "details": {"a": 1}}),),
        ),
        done(
            "that takes details away",
            {"key": {"id": "i1"}, "patch": {"details": None}},
            {"title": "Down"},
            given=(("incidents", {**INCIDENT, "details": {"a": 1}}),),
        ),
    ),
    *rows(
        "articles",
        "update",
        done(
            "keeps its address",
            {"key": {"author": "amy", "year": 2017, "slug": "on"}, "patch": {"title": "Off"}},
            {"slug": "on", "title": "Off"},
            given=(("articles", {"author": "amy", "title": "On", "published_at": "2017-05-04T00:00:00Z"}),),
        ),
    ),
]

DELETES: Final = [
    *rows(
        "users",
        "delete",
        done("of what is there", {"key": KEY}, given=HERE),
        no("of nobody", "not_found", {"key": KEY}),
        no("of what has expired", "not_found", {"key": KEY}, given=GONE),
        done("at the stored revision", {"key": KEY, "if_match": "current"}, given=HERE),
        no("at another revision", "revision_mismatch", {"key": KEY, "if_match": "stale"}, given=HERE),
        no("of nobody at a revision", "not_found", {"key": KEY, "if_match": "stale"}),
        done("at any revision", {"key": KEY, "if_match": "*"}, given=HERE),
        no("of nobody at any revision", "not_found", {"key": KEY, "if_match": "*"}),
        done("guarded", {"key": KEY, "handling": "guarded"}, given=HERE),
        done("exactly once", {"key": KEY, "handling": "exactly-once"}, given=HERE),
    ),
    *rows(
        "pings",
        "delete",
        done(
            "of what lies outside of the window",
            {"key": {n: OLD[n] for n in ("series", "episode", "at", "id")}},
            given=LAST_MONTH,
        ),
    ),
    *rows(
        "incidents",
        "delete",
        done("with its details", {"key": {"id": "i1"}}, given=(("incidents", {**INCIDENT, "details": 1}),)),
    ),
    *rows(
        "articles",
        "delete",
        bad(
            "by a year that is none",
            {"key": {"author": "amy", "year": "soon", "slug": "on"}},
            ways=NO_ADDRESS,
            year="int_parsing",
        ),
    ),
    *rows(
        "timed-accesses",
        "delete",
        no("of what is only added", "method_not_allowed", {"key": {n: USED[n] for n in ("path", "accessed_at")}}),
    ),
]
