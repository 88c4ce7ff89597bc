"""The handlers of the reshard functions: refused requests and their errors."""

from collections.abc import Iterator
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import StreamRecord

from domain.samples.users import User
from dynashard import definition
from dynashard.errors import ConfigurationError, InputError
from dynashard.resharding import Timing
from dynashard_serving.reshard.backend import scope_of
from dynashard_serving.reshard.dispatch import Dispatcher, wanted
from dynashard_serving.reshard.executions import beginning_of, following, name_of
from dynashard_serving.reshard.operations import Operator
from dynashard_serving.reshard.settings import Settings
from dynashard_serving.reshard.steps import reason_of

pytestmark = pytest.mark.infra

START = {"operation": "reshard.start", "entity": "users", "partition": {"tenant_id": "abc"}, "to": 32}


class Nothing:
    """Stands for the layer. A call means that the request was not refused."""

    def __getattr__(self, name: str) -> Any:
        def reached(*_: Any, **__: Any) -> None:
            raise RuntimeError(name)

        return reached


def refused(event: Any) -> dict[str, Any]:
    logged: list[Exception] = []
    answer = Operator(Nothing(), logged.append).answer(event)  # type: ignore[arg-type]
    assert (answer["ok"], logged) == (False, [])
    error: dict[str, Any] = answer["error"]
    return error


@pytest.mark.parametrize(
    ("event", "field", "said"),
    [
        (None, None, "a request is an object"),
        ([], None, "a request is an object"),
        ({}, "operation", "there is no operation None"),
        ({"operation": "reshard.stop"}, "operation", "reshard.start, reshard.status"),
        ({"operation": ["reshard.start"]}, "operation", "there is no operation"),
        ({**START, "too": 1}, "too", "'too'"),
        ({**START, "entity": "people"}, "entity", "user.v1.User"),
        ({**START, "entity": 7}, "entity", "name an entity"),
        ({**START, "partition": "abc"}, "partition", "by its fields"),
        ({**START, "partition": {"tenant": "abc"}}, "partition", "has the fields tenant_id, not tenant"),
        ({**START, "partition": {}}, "tenant_id", "tenant_id"),
        ({**START, "partition": {"tenant_id": "a:b"}}, "tenant_id", "tenant_id"),
        ({**START, "partition": {"tenant_id": ""}}, "tenant_id", "tenant_id"),
        ({**START, "index": "by_department"}, "partition", "leave partition out"),
        ({**START, "partition": None, "index": "by_age"}, "index", "by_email, by_department, by_manager"),
        ({**START, "index": 3}, "index", "name an index"),
        ({name: value for name, value in START.items() if name != "partition"}, "partition", "say null"),
        ({**START, "to": "32"}, "to", "give the shard count"),
        ({**START, "to": True}, "to", "give the shard count"),
        ({name: value for name, value in START.items() if name != "to"}, "to", "give the shard count"),
        ({**START, "budget": 0}, "budget", "above 0"),
        ({**START, "budget": "fast"}, "budget", "above 0"),
        ({**START, "survey": "no"}, "survey", "true or false"),
        ({**START, "operation": "reshard.abort"}, "to", "reshard.abort takes no to"),
        ({"operation": "reshard.status", "partition": {"tenant_id": "abc"}}, "partition", "takes no partition"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_a_wrong_request_is_refused_with_the_reason(event: Any, field: str | None, said: str) -> None:
    error = refused(event)

    assert said in error["message"]
    assert error["details"].get("field") == field
    assert error["code"] in ("invalid_input", "invalid_key")


def test_an_unexpected_error_is_logged_and_reported_without_details() -> None:
    logged: list[Exception] = []

    answer = Operator(Nothing(), logged.append).answer(START)  # type: ignore[arg-type]

    assert answer["error"]["code"] == "internal_error"
    assert "start" not in answer["error"]["message"]
    assert [str(error) for error in logged] == ["start"]


def test_a_scope_is_named_by_either_name_of_its_entity() -> None:
    user = definition(User)

    assert scope_of("users", {"tenant_id": "abc"}) == scope_of("user.v1.User", {"tenant_id": "abc"})
    assert scope_of("users", {"tenant_id": "abc"}).key == "user.v1.User:abc"
    assert scope_of("users").key == "user.v1.User"
    assert scope_of("users", index="by_department").key == "user.v1.User|GSI2"
    assert scope_of("users").entity is user
    with pytest.raises(InputError):
        scope_of("nobody")


def test_execution_names_are_distinct_and_short_enough() -> None:
    keys = ["user.v1.User", "user.v1.User:abc", "user.v1.User:ABC", "user.v1.User|GSI1", "user:" + "ä" * 2000, "user:"]

    names = [following(name_of(key, "1800000000.123456"), 9999) for key in keys]

    assert len({beginning_of(key) for key in keys}) == len(keys)
    assert max(len(name) for name in names) <= 80
    assert all(name.replace("-", "").isascii() and name.replace("-", "").isalnum() for name in names)
    assert not any(
        name.startswith(beginning_of(key)) for name in names for key in keys if key != keys[names.index(name)]
    )


def image(**attributes: Any) -> dict[str, Any]:
    return {"partition": {"S": "a"}, "number_of_shards": {"N": "1"}, "last_updated": {"N": "1"}, **attributes}


TARGET = {"target": {"N": "2"}}
UNSWEPT = {"swept": {"BOOL": False}}
STILL = {"change": {"M": {"paused": {"BOOL": True}}}}


@pytest.mark.parametrize(
    ("old", "new", "starts"),
    [
        (None, image(**TARGET), True),
        (image(), image(**TARGET), True),
        (image(**TARGET), image(**TARGET), False),
        (image(**TARGET), image(**UNSWEPT), False),
        (image(**UNSWEPT), image(**TARGET), False),
        (image(**UNSWEPT), image(), False),
        (image(**TARGET), image(**TARGET, **STILL), False),
        (image(**TARGET, **STILL), image(**TARGET), True),
        (image(**TARGET, **STILL), image(), True),
        (image(**TARGET, **STILL), image(**TARGET, **STILL), False),
        (image(), None, False),
        (None, {"partition": {"S": "@0@a"}, "target": {"N": "2"}}, False),
    ],
    ids=[
        "first record", "asked", "phase", "sweep", "back", "over", "pause", "resume", "abort of a paused one", "still",
        "deleted", "progress",
    ],
)  # fmt: skip
def test_an_execution_is_started_for_a_new_and_for_a_resumed_change(old: Any, new: Any, starts: bool) -> None:  # noqa: FBT001
    images = {name: value for name, value in (("OldImage", old), ("NewImage", new)) if value is not None}

    assert (wanted(StreamRecord(images)) is not None) == starts


def test_a_record_that_cannot_be_started_keeps_no_later_one_waiting() -> None:
    records = [
        {"dynamodb": {"SequenceNumber": number, "NewImage": image(partition={"S": key}, **TARGET)}}
        for number, key in (("1", "busy"), ("2", "free"))
    ]
    started: list[tuple[str, str]] = []
    log: list[str] = []

    def start(key: str, stamp: str) -> bool:
        if key == "busy":
            raise RuntimeError("later")
        started.append((key, stamp))
        return True

    dispatcher = Dispatcher(start, log.append)
    answer, all_failed = dispatcher.dispatch({"Records": records}), dispatcher.dispatch({"Records": records[:1]})

    assert answer == all_failed
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    assert started == [("free", "1")]
    failure = "no execution could be started for busy: later"
    assert log == [failure, "started: the resize of free", failure]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"Error": "X", "Cause": '{"errorType": "ThrottledError", "errorMessage": "slow"}'}, "ThrottledError: slow"),
        ({"Error": "States.Timeout", "Cause": ""}, "States.Timeout"),
        ({"Error": "X", "Cause": "[1]"}, "[1]"),
        ({}, "unknown error"),
    ],
    ids=["lambda", "timeout", "other", "nothing"],
)
def test_the_reason_is_the_error_that_step_functions_caught(error: dict[str, str], reason: str) -> None:
    assert reason_of(error) == reason


ENVIRONMENT = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "p"}


def test_settings_have_defaults_and_come_from_the_environment() -> None:
    settings = Settings.from_env(
        {**ENVIRONMENT, "TOPOLOGY_LEASE_SECONDS": "1.5", "CONCURRENCY": "3", "SLICE_SECONDS": "9"}
    )

    assert (settings.timing, settings.concurrency, settings.slice_seconds) == (Timing(1.5, 29.0, 1.0), 3, 9.0)


def wrong() -> Iterator[tuple[dict[str, str], str]]:
    yield {"TOPOLOGY_TABLE": "p"}, "TABLE_NAME"
    yield {"TABLE_NAME": "t"}, "TOPOLOGY_TABLE"
    for name, value in (
        ("TOPOLOGY_LEASE_SECONDS", "0"),
        ("TOPOLOGY_LEASE_SECONDS", "soon"),
        ("TOPOLOGY_OPERATION_SECONDS", "-1"),
        ("TOPOLOGY_SKEW_SECONDS", "-1"),
        ("CONCURRENCY", "0"),
        ("SLICE_SECONDS", "0"),
    ):
        yield {**ENVIRONMENT, name: value}, name


@pytest.mark.parametrize(("environment", "name"), list(wrong()), ids=[f"{e[1]}-{i}" for i, e in enumerate(wrong())])
def test_an_invalid_setting_is_named(environment: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Settings.from_env(environment)
