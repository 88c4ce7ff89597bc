"""Requests that create an item, good and bad."""

from typing import Final

from tests.engine.serving.operations_data import (
    INCIDENT,
    PING,
    PINGED,
    SENT,
    USED,
    ping_at,
    user,
)
from tests.engine.serving.operations_row import GONE, HERE, HTTP, KEY, bad, done, no, rows

CREATES: Final = [
    *rows(
        "users",
        "create",
        done("with an id", {"item": user()}, {"id": "ada", "status": "active", "department": None}),
        done("without an id", {"item": {n: v for n, v in user().items() if n != "id"}}, {"display_name": "Ada"}),
        done(
            "with every field",
            {"item": user(department="eng", manager_id="bob", status="disabled")},
            {"status": "disabled"},
        ),
        done("with an id of any characters", {"item": user(id="a/b %:ü")}, {"id": "a/b %:ü"}),
        bad("without required fields", {"item": {"id": "ada"}}, email="missing", display_name="missing"),
        bad("of nothing", {"item": {}}, email="missing", display_name="missing"),
        bad("with an unknown field", {"item": user(shoe=7)}, shoe="extra_forbidden"),
        bad("with a number for text", {"item": user(email=7)}, email="string_type"),
        bad("with a flag for text", {"item": user(display_name=True)}, display_name="string_type"),
        bad("with null for text", {"item": user(email=None)}, email="string_type"),
        bad("with a list for text", {"item": user(email=["a@b.c"])}, email="string_type"),
        bad("with an object for text", {"item": user(email={"at": "b.c"})}, email="string_type"),
        bad("with no address", {"item": user(email="nobody")}, email="string_pattern_mismatch"),
        bad("with an empty name", {"item": user(display_name="")}, display_name="string_too_short"),
        bad("with a long name", {"item": user(display_name="x" * 201)}, display_name="string_too_long"),
        bad("with a state there is not", {"item": user(status="asleep")}, status="enum"),
        bad("with faults in two fields", {"item": user(email=7, status=1)}, email="string_type", status="enum"),
        bad("with a stamp", {"item": user(created_at="2026-11-21T12:00:00Z")}, created_at="read_only"),
        bad("with a revision", {"item": user(revision="x")}, revision="read_only"),
        bad("of another tenant", {"item": user(tenant_id="other")}, tenant_id="immutable"),
        bad("with a number for an id", {"item": user(id=7)}, id="string_type"),
        *(
            bad(f"with the id {text!a}", {"item": user(id=text)}, id="unaddressable")
            for text in (".", "..", "a?b", "a\nb")
        ),
        bad("with an empty id", {"item": user(id="")}, id="string_too_short"),
        no("with an id that is too long", "invalid_key", {"item": user(id="x" * 1100)}, {"": "invalid_key"}),
        bad("that has expired", {"item": user(expires_at="2026-11-21T11:00:00Z")}, expires_at="datetime_future"),
        bad("that expires now", {"item": user(expires_at="2026-11-21T12:00:00.9Z")}, expires_at="datetime_future"),
        done("that expires in a second", {"item": user(expires_at="2026-11-21T12:00:01Z")}, {"id": "ada"}),
        done("that never expires", {"item": user(expires_at=None)}, {"expires_at": None}),
        bad("that expires at a number", {"item": user(expires_at=1)}, expires_at="datetime_type"),
        no("of what is there", "already_exists", {"item": user()}, given=HERE),
        done("of what has expired", {"item": user()}, {"id": "ada"}, given=GONE),
        done(
            "sent again",
            {"item": user(), "idempotency_key": "k"},
            before=[("create", {"item": user(), "idempotency_key": "k"})],
        ),
        done(
            "sent again after its item was deleted",
            {"item": user(), "idempotency_key": "k"},
            before=[("create", {"item": user(), "idempotency_key": "k"}), ("delete", {"key": KEY})],
        ),
        no(
            "with the key of another request",
            "idempotency_key_reused",
            {"item": user(display_name="Eve"), "idempotency_key": "k"},
            {"idempotency_key": "idempotency_key_reused"},
            before=[("create", {"item": user(), "idempotency_key": "k"})],
        ),
        *(
            bad(
                f"with a key of {len(key)} characters",
                {"item": user(), "idempotency_key": key},
                ways=HTTP,
                idempotency_key="out_of_range",
            )
            for key in ("", "k" * 256)
        ),
        *(
            done(f"at the level {level}", {"item": user(), "handling": level})
            for level in ("plain", "guarded", "exactly-once")
        ),
        no(
            "at a level there is not",
            "invalid_query",
            {"item": user(), "handling": "careless"},
            {"handling": "invalid_query"},
            ways=HTTP,
        ),
    ),
    *rows(
        "pings",
        "create",
        done("of now", {"item": PING}, {"seconds": 60}),
        done("of the last moment of the window", {"item": ping_at("2026-11-14T12:00:00Z")}),
        bad("a second too old", {"item": ping_at("2026-11-14T11:59:59Z")}, at="outside_window"),
        bad("of 2020", {"item": ping_at("2020-01-01T00:00:00Z")}, at="outside_window"),
        done("of a clock that is fast", {"item": ping_at("2026-11-21T12:00:04Z")}),
        no(
            "of a clock that is minutes fast",
            "key_too_far_ahead",
            {"item": ping_at("2026-11-21T12:05:00Z")},
            {"at": "key_too_far_ahead"},
            ways={"leave": (None, {})},
        ),
        bad("of a clock that is too fast", {"item": ping_at("2026-11-21T12:05:01Z")}, at="outside_window"),
        bad("without a zone", {"item": ping_at("2026-11-21T12:00:00")}, at="value_error"),
        bad("of another age", {"item": ping_at("1999-01-01T00:00:00Z")}, at="value_error"),
        bad("with a name that is none", {"item": {**PING, "series": "a b"}}, series="string_pattern_mismatch"),
        bad("of less than no time", {"item": {**PING, "seconds": -1}}, seconds="greater_than_equal"),
        bad("with a flag for a number", {"item": {**PING, "seconds": True}}, seconds="int_type"),
        bad("with text for a number", {"item": {**PING, "seconds": "60"}}, seconds="int_type"),
        done("with a whole number as a decimal", {"item": {**PING, "seconds": 5.0}}, {"seconds": 5}),
        done(
            "kept for too long",
            {"item": {**PING, "expires_at": "2036-01-01T00:00:00Z"}},
            {"expires_at": "2027-03-01T00:00:00Z"},
        ),
        bad("that has expired", {"item": {**PING, "expires_at": "2026-11-21T11:00:00Z"}}, expires_at="datetime_future"),
        # A queue recognises a ping that is sent twice, and stores it once.
        no("that is there", "already_exists", {"item": PING}, given=PINGED, ways={"leave": (None, {})}),
    ),
    *rows(
        "articles",
        "create",
        done(
            "derives what follows from its fields",
            {"item": {"author": "amy", "title": "On Keys!", "published_at": "2017-05-04T00:00:00Z"}},
            {"year": 2017, "slug": "on-keys"},
        ),
        bad(
            "of another year",
            {"item": {"author": "amy", "title": "On", "published_at": "2017-05-04T00:00:00Z", "year": 2018}},
            {"": "value_error"},
        ),
        bad("without a time", {"item": {"author": "amy", "title": "On"}}, published_at="missing"),
        bad(
            "with a slug that is none",
            {"item": {"author": "amy", "title": "On", "published_at": "2017-05-04T00:00:00Z", "slug": "a b"}},
            slug="string_pattern_mismatch",
        ),
        no(
            "whose author divides keys",
            "invalid_key",
            {"item": {"author": "a:b", "title": "On", "published_at": "2017-05-04T00:00:00Z"}},
            {"author": "invalid_key"},
        ),
    ),
    *rows(
        "licensors",
        "create",
        done("with an id", {"item": {"id": "acme", "name": "Acme"}}, {"name": "Acme"}),
        bad("with an id that is none", {"item": {"id": "a b", "name": "Acme"}}, id="string_pattern_mismatch"),
        bad("without a name", {"item": {"id": "acme"}}, name="missing"),
    ),
    *rows(
        "licences",
        "create",
        done("of one part unless it says so", {"item": {"series": "s", "licensor_id": "acme"}}, {"parts": 1}),
        bad("of no part", {"item": {"series": "s", "licensor_id": "acme", "parts": 0}}, parts="greater_than_equal"),
        bad(
            "of too many parts",
            {"item": {"series": "s", "licensor_id": "acme", "parts": 1_000_001}},
            parts="less_than_equal",
        ),
    ),
    *rows(
        "incidents",
        "create",
        done("with details, which do not come back", {"item": {**INCIDENT, "details": {"a": 1}}}, {"state": "OPEN"}),
        bad(
            "with a participant that is none",
            {"item": {**INCIDENT, "participants": ["ada"]}},
            {"participants.0": "string_pattern_mismatch"},
        ),
        no(
            "at a level that details do not allow",
            "invalid_query",
            {"item": INCIDENT, "handling": "exactly-once"},
            {"handling": "invalid_query"},
        ),
    ),
    *rows("participations", "create", no("of what is only read", "method_not_allowed", {"item": {}})),
    *rows("operations", "create", no("of what is only read", "method_not_allowed", {"item": {}})),
    *rows("accesses", "create", done("at random", {"item": {**USED, "id": "1"}}, {"action": "read"})),
    *rows(
        "ordered-accesses",
        "create",
        done("by epochs", {"item": {**USED, "id": "1"}}, {"action": "read"}),
        done("a little ahead", {"item": {**USED, "id": "1", "accessed_at": "2026-11-21T12:00:04Z"}}, {"id": "1"}),
        no(
            "too far ahead",
            "key_too_far_ahead",
            {"item": {**USED, "id": "1", "accessed_at": "2026-11-21T12:00:06Z"}},
            {"accessed_at": "key_too_far_ahead"},
        ),
    ),
    *rows(
        "notifications",
        "create",
        done("of now", {"item": SENT}, {"text": "Down"}),
        no("of any id", "invalid_key", {"item": {**SENT, "id": "ada"}}, {"id": "invalid_key"}),
        no(
            "of later",
            "key_too_far_ahead",
            {"item": {**SENT, "id": "3MRFiUUcnhHJWI2Ak73cQAU8FKJ"}},
            {"id": "key_too_far_ahead"},
        ),
    ),
    *rows("timed-accesses", "create", done("by modulo", {"item": USED}, {"action": "read"})),
]
