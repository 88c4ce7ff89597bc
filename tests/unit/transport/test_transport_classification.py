"""Each answer in `responses/`, a documented body of DynamoDB, becomes an error that a caller can act on."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineError,
    EngineUnavailableError,
    InputError,
    InvalidValueError,
    ItemTooLargeError,
    KeyRangeThrottledError,
    OutcomeUnknownError,
    TableThrottledError,
    ThrottledError,
    ThrottleReason,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.transport.classification import Refusal, classify, throttle_names
from dynashard.transport.wire_format import parsed_answer, refusal_of

pytestmark = pytest.mark.unit

RESPONSES = Path(__file__).parent / "responses"
TABLE_ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/users"

KINDS: dict[str, type[DynashardError]] = {
    "access_denied": EngineError,
    "account_limit": TableThrottledError,
    "account_limit_without_reasons": TableThrottledError,
    "collection_full": EngineError,
    "condition_failed": ConditionFailedError,
    "condition_failed_on_nothing": ConditionFailedError,
    "index_and_key_range_throttled": KeyRangeThrottledError,
    "index_key_range_throttled_on_demand": KeyRangeThrottledError,
    "index_provisioned_throttled": TableThrottledError,
    "index_read_key_range_throttled": KeyRangeThrottledError,
    "internal_error": OutcomeUnknownError,
    "invalid_request": EngineError,
    "item_too_large": ItemTooLargeError,
    "key_range_throttled": KeyRangeThrottledError,
    "missing_table": EngineError,
    "provisioned_throttled_without_reasons": ThrottledError,
    "sum_too_large": InvalidValueError,
    "sum_too_long": InvalidValueError,
    "table_maximum_throttled": TableThrottledError,
    "table_provisioned_throttled": TableThrottledError,
    "throttled_for_a_new_reason": ThrottledError,
    "throttled_without_reasons": ThrottledError,
    "transaction_beyond_account_limit": TableThrottledError,
    "transaction_condition_failed": TransactionCanceledError,
    "transaction_condition_failed_and_conflict": TransactionCanceledError,
    "transaction_conflict": TransactionConflictError,
    "transaction_conflict_and_throttle": TransactionConflictError,
    "transaction_in_progress": TransactionConflictError,
    "transaction_invalid_and_throttled": TransactionCanceledError,
    "transaction_throttled": ThrottledError,
    "unavailable": OutcomeUnknownError,
    "unknown_client": EngineError,
    "update_too_large": ItemTooLargeError,
    "write_meets_transaction": TransactionConflictError,
}


def refusal(name: str, *, attempts: int = 1) -> Refusal:
    """Return a stored answer as the parser returns it."""
    stored = json.loads((RESPONSES / f"{name}.json").read_text())
    answer = parsed_answer(stored["status"], stored["headers"], json.dumps(stored["body"]).encode())
    return refusal_of(stored["operation"], answer, attempts)


def classified(name: str, *, attempts: int = 1) -> Any:
    return classify(refusal(name, attempts=attempts))


def test_every_stored_answer_has_an_expectation() -> None:
    stored = {path.stem for path in RESPONSES.glob("*.json")}

    assert stored == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_an_answer_becomes_exactly_its_kind_of_error(name: str) -> None:
    error = classified(name)

    assert type(error) is KINDS[name]


OF_THE_CALLER = {name for name, kind in KINDS.items() if issubclass(kind, InputError)}


@pytest.mark.parametrize("name", sorted(set(KINDS) - OF_THE_CALLER))
def test_an_error_names_the_operation_in_attribute_and_message(name: str) -> None:
    answer = refusal(name)

    error = classify(answer)

    assert isinstance(error, EngineError)
    assert error.operation == answer.operation
    assert answer.operation in str(error)
    assert error.aws_code == answer.code


def test_a_failed_condition_carries_the_stored_item_in_wire_form() -> None:
    error = classified("condition_failed")

    assert error.item["Rev"] == {"S": "r1"}
    assert error.item["photo"] == {"B": "AAEC"}
    assert not error.ambiguous


def test_a_failed_condition_on_nothing_carries_no_item() -> None:
    assert classified("condition_failed_on_nothing").item is None


@pytest.mark.parametrize(
    ("name", "reason", "resource"),
    [
        ("key_range_throttled", "TableWriteKeyRangeThroughputExceeded", TABLE_ARN),
        (
            "index_key_range_throttled_on_demand",
            "IndexWriteKeyRangeThroughputExceeded",
            f"{TABLE_ARN}/index/GSI1",
        ),
        ("account_limit", "TableReadAccountLimitExceeded", TABLE_ARN),
        ("table_maximum_throttled", "TableWriteMaxOnDemandThroughputExceeded", TABLE_ARN),
    ],
)
def test_reason_and_resource_are_read_in_both_spellings(name: str, reason: str, resource: str) -> None:
    error = classified(name)

    assert error.reasons == (ThrottleReason(reason, resource),)
    assert reason in str(error)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("key_range_throttled", [("key_range", None, "write")]),
        ("index_key_range_throttled_on_demand", [("key_range", "GSI1", "write")]),
        ("index_read_key_range_throttled", [("key_range", "GSI2", "read")]),
        ("index_and_key_range_throttled", [("table", "GSI1", "write"), ("key_range", None, "write")]),
        ("index_provisioned_throttled", [("table", "GSI3", "write")]),
        ("table_provisioned_throttled", [("table", None, "read")]),
        ("table_maximum_throttled", [("table", None, "write")]),
        ("account_limit", [("table", None, "read")]),
        ("throttled_for_a_new_reason", [("unknown", None, "write")]),
        ("throttled_without_reasons", []),
        ("transaction_throttled", []),
    ],
)
def test_a_throttle_names_its_limit_and_resource(name: str, expected: list[tuple[str, str | None, str]]) -> None:
    found = classified(name).reasons

    assert [(each.kind, each.index, "read" if each.reading else "write") for each in found] == expected
    assert [each.on_index for each in found] == [index is not None for _, index, _ in expected]


REMEDIES = {
    "ProvisionedThroughput": "bill on demand",
    "AccountLimit": "ask for a higher one",
    "KeyRangeThroughput": "raise its shard count",
    "MaxOnDemandThroughput": "is reached: raise it",
}


def every_reason() -> list[tuple[str, str, str]]:
    return [(on, does, limit) for on in ("Table", "Index") for does in ("Read", "Write") for limit in REMEDIES]


@pytest.mark.parametrize(
    "spelled",
    [
        ("ProvisionedThroughputExceededException", "ThrottlingReasons", "reason"),
        ("RequestLimitExceeded", "ThrottlingReasons", "reason"),
        ("ThrottlingException", "throttlingReasons", "reason"),
        ("ThrottlingException", "ThrottlingReasons", "Reason"),
        ("ProvisionedThroughputExceededException", "throttlingReasons", "Reason"),
    ],
    ids="-".join,
)
@pytest.mark.parametrize(("on", "does", "limit"), every_reason())
def test_every_reason_is_read_on_every_exception(on: str, does: str, limit: str, spelled: tuple[str, str, str]) -> None:
    code, field, spelling = spelled
    where = "resource" if spelling == "reason" else "Resource"
    arn = TABLE_ARN if on == "Table" else f"{TABLE_ARN}/index/GSI2"
    body = {field: [{spelling: f"{on}{does}{limit}Exceeded", where: arn}]}

    error: Any = classify(Refusal("PutItem", 400, code, "", body))
    [reason] = error.reasons

    assert type(error) is (KeyRangeThrottledError if limit == "KeyRangeThroughput" else TableThrottledError)
    assert (reason.index, reason.on_index) == ((None, False) if on == "Table" else ("GSI2", True))
    assert reason.reading is (does == "Read")
    assert REMEDIES[limit] in reason.remedy
    assert reason.remedy in str(error)
    assert ("index GSI2" if on == "Index" else "the table") in reason.remedy


def test_an_index_without_an_arn_is_not_taken_for_the_table() -> None:
    reason = ThrottleReason("IndexWriteKeyRangeThroughputExceeded", "")

    assert (reason.kind, reason.index, reason.on_index) == ("key_range", None, True)


def test_reasons_without_text_are_ignored() -> None:
    error: Any = classify(Refusal("PutItem", 400, "ThrottlingException", "", {"throttlingReasons": [{}]}))

    assert (type(error), error.reasons) == (ThrottledError, ())


@pytest.mark.parametrize("reasons", ["hot", {"reason": "hot"}, [None], ["hot"], [{"reason": None}], 5])
def test_what_stands_in_place_of_the_reasons_of_a_throttle_says_nothing(reasons: Any) -> None:
    error: Any = classify(Refusal("PutItem", 400, "ThrottlingException", "", {"throttlingReasons": reasons}))

    assert (type(error), error.reasons) == (ThrottledError, ())


@pytest.mark.parametrize("reasons", ["ConditionalCheckFailed", None, 5, {"Code": "None"}])
def test_what_stands_in_place_of_the_reasons_of_a_cancellation_says_nothing(reasons: Any) -> None:
    error: Any = classify(cancelled(reasons))

    assert (type(error), error.reasons) == (TransactionCanceledError, ())


def test_actions_of_a_cancellation_keep_their_places() -> None:
    error: Any = classify(cancelled([None, {"Code": None}, {"Code": ["?"]}, {"Code": "ConditionalCheckFailed"}]))

    assert [reason.condition_failed for reason in error.reasons] == [False, False, False, True]
    assert [reason.refused for reason in error.reasons] == [False, False, True, True]


def cancelled(reasons: Any) -> Refusal:
    return Refusal("TransactWriteItems", 400, "TransactionCanceledException", "", {"CancellationReasons": reasons})


@pytest.mark.parametrize(
    ("name", "blamed"),
    [
        ("transaction_throttled", True),
        ("throttled_without_reasons", False),
        ("provisioned_throttled_without_reasons", False),
        ("index_provisioned_throttled", False),
        ("transaction_beyond_account_limit", False),
    ],
)
def test_a_message_that_blames_the_indexes_replaces_missing_reasons(name: str, *, blamed: bool) -> None:
    assert classified(name).index_blamed is blamed


def test_the_waiting_time_of_an_answer_is_rounded_up_to_whole_seconds() -> None:
    assert classified("table_maximum_throttled").retry_after == 3
    assert classified("key_range_throttled").retry_after == 1


@pytest.mark.parametrize("header", ["soon", "-5", "1e3", "9" * 5000])
def test_a_waiting_time_that_is_not_one_is_a_second(header: str) -> None:
    metadata = {"HTTPStatusCode": 400, "HTTPHeaders": {"x-amz-retry-after": header}}
    answer = {"Error": {"Code": "ThrottlingException", "Message": ""}, "ResponseMetadata": metadata}

    assert refusal_of("PutItem", answer).retry_after == 1


def test_a_cancelled_transaction_has_a_reason_for_each_action_with_the_stored_item() -> None:
    error = classified("transaction_condition_failed")

    assert [reason.code for reason in error.reasons] == ["None", "ConditionalCheckFailed"]
    assert error.reasons[0].item is None
    assert error.reasons[1].item == {"PK": {"S": "a"}, "Rev": {"S": "r1"}}
    assert not error.ambiguous
    assert "action 1: ConditionalCheckFailed" in str(error)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_answer_of_another_server_is_unavailability(status: int) -> None:
    answer = parsed_answer(status, {}, b"<html>Gone</html>")

    error = classify(refusal_of("Query", answer))

    assert type(error) is EngineUnavailableError
    assert error.aws_code == str(status)


def test_an_unknown_error_with_status_429_is_a_throttle() -> None:
    answer = parsed_answer(429, {}, b"")

    error = classify(refusal_of("Query", answer))

    assert type(error) is ThrottledError


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("key_range_throttled", ("TableWriteKeyRangeThroughputExceeded",)),
        (
            "index_and_key_range_throttled",
            ("IndexWriteMaxOnDemandThroughputExceeded", "TableWriteKeyRangeThroughputExceeded"),
        ),
        ("throttled_without_reasons", ("ThrottlingException",)),
        ("transaction_throttled", ("ProvisionedThroughputExceeded", "ThrottlingError")),
        ("transaction_conflict_and_throttle", ("ThrottlingError",)),
        ("transaction_condition_failed", ()),
        ("condition_failed", ()),
        ("internal_error", ()),
    ],
)
def test_a_meter_counts_throttles_by_reason_and_nothing_else(name: str, counted: tuple[str, ...]) -> None:
    assert throttle_names(refusal(name)) == counted
