"""The decisions of `dynashard verify-aws` about what only AWS can show, from observations that tests make up."""

from collections import Counter
from collections.abc import Mapping
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest

from dynashard_checks.verify_aws.check import Outcome, Verdict, compare
from dynashard_checks.verify_aws.checks import clocks
from dynashard_checks.verify_aws.checks.api import forged, judge_header_sizes
from dynashard_checks.verify_aws.checks.capacity import judge_much, judge_switches, judge_together
from dynashard_checks.verify_aws.checks.hot_keys import Measured, judge_rates
from dynashard_checks.verify_aws.checks.logs import judge_delivery, judge_sum
from dynashard_checks.verify_aws.checks.queues import judge_characters
from dynashard_checks.verify_aws.checks.streams import judge_expiry, judge_order
from dynashard_checks.verify_aws.checks.throttles import judge_reasons, judge_unexplained
from dynashard_checks.verify_aws.checks.transactions import judge_conflicts, judge_moves, state_of
from dynashard_checks.verify_aws.context import Answer, Clock, Context
from dynashard_checks.verify_aws.load import Traffic, reasons_of

pytestmark = pytest.mark.unit

ARN = "arn:aws:dynamodb:eu-west-1:111122223333:table/t"
KEY_RANGE = "TableWriteKeyRangeThroughputExceeded"
MAXIMUM = "TableWriteMaxOnDemandThroughputExceeded"
HOLDS, DIFFERS, UNCLEAR = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNCLEAR


def traffic(reasons: Mapping[tuple[str, str], int] | None = None, **more: Any) -> Traffic:
    counted = Counter(reasons or {})
    return Traffic(250.0, 20, [100] * 20, **{"sent": 5000, "throttled": counted.total(), "reasons": counted, **more})


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (traffic({(KEY_RANGE, ARN): 900}), HOLDS),
        (traffic({(KEY_RANGE, ARN): 900, (MAXIMUM, ARN): 3}), HOLDS),
        (traffic({(MAXIMUM, ARN): 900}), DIFFERS),
        (traffic({(KEY_RANGE, f"{ARN}/index/GSI1"): 900}), DIFFERS),
        (traffic({(KEY_RANGE, ARN): 900}, throttled=901, unexplained=1), DIFFERS),
        (traffic(), UNCLEAR),
        (traffic({(KEY_RANGE, ARN): 900}, errors=Counter({"AccessDeniedException": 1})), UNCLEAR),
    ],
)
def test_the_reasons_of_throttles(seen: Traffic, verdict: Verdict) -> None:
    assert judge_reasons(seen, KEY_RANGE, ARN).verdict is verdict


@pytest.mark.parametrize("name", ["ThrottlingReasons", "throttlingReasons"])
def test_reasons_are_read_in_both_spellings(name: str) -> None:
    answer = Answer({name: [{"reason": KEY_RANGE, "resource": ARN}]}, "ThrottlingException")

    assert reasons_of(answer) == [(KEY_RANGE, ARN)]


PART = Answer({"UnprocessedItems": {"t": [{}]}})


def cancelled(*codes: str) -> Answer:
    return Answer({"CancellationReasons": [{"Code": code} for code in codes]}, "TransactionCanceledException")


@pytest.mark.parametrize(
    ("batches", "transactions", "verdict"),
    [
        ([Answer({}), PART], [Answer({}), cancelled("None", "ProvisionedThroughputExceeded")], HOLDS),
        ([PART], [cancelled("ThrottlingError")], HOLDS),
        ([PART], [cancelled("KeyRangeExceeded")], DIFFERS),
        ([PART], [Answer({}, "ThrottlingException")], DIFFERS),
        ([PART], [Answer({})], UNCLEAR),
        ([Answer({})], [cancelled("ThrottlingError")], UNCLEAR),
        ([Answer({}, "ProvisionedThroughputExceededException")], [cancelled("ThrottlingError")], UNCLEAR),
    ],
)
def test_throttles_of_batches_and_transactions(
    batches: list[Answer], transactions: list[Answer], verdict: Verdict
) -> None:
    assert judge_unexplained(batches, transactions).verdict is verdict


OLD: dict[str, Any] = {"PK": {"S": "old"}}
MARKED: dict[str, Any] = {**OLD, "MovedTo": {"N": "2"}}
NEW: dict[str, Any] = {"PK": {"S": "new"}}


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [(OLD, None, "before"), (MARKED, NEW, "after"), (MARKED, None, "half"), (OLD, NEW, "half"), (None, NEW, "half")],
)
def test_the_state_of_a_moved_item(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, state: str) -> None:
    assert state_of(old, new).partition(":")[0] == state


@pytest.mark.parametrize(
    ("looks", "verdict"),
    [
        ({"before": 5, "after": 5, "conflict": 2}, HOLDS),
        ({"before": 5, "after": 5, "half: marked at the old place, nothing at the new one": 1}, DIFFERS),
        ({"before": 5, "after": 5, "InternalServerError": 1}, DIFFERS),
        ({"before": 5, "conflict": 1}, UNCLEAR),
    ],
)
def test_what_readers_saw_of_moved_items(looks: Mapping[str, int], verdict: Verdict) -> None:
    assert judge_moves(Counter(looks)).verdict is verdict


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([("transaction", ["TransactionCanceledException", "TransactionConflict", "None"]), ("write", [""])], HOLDS),
        ([("write", ["TransactionConflictException"])], HOLDS),
        ([("write", [""]), ("transaction", [""])], UNCLEAR),
        ([("write", ["ValidationException"])], DIFFERS),
        ([("transaction", ["TransactionCanceledException", "ThrottlingError", "None"])], DIFFERS),
    ],
)
def test_the_codes_of_conflicts(answers: list[tuple[str, list[str]]], verdict: Verdict) -> None:
    assert judge_conflicts(answers).verdict is verdict


def record(item: int, version: str | None, number: int = 0) -> dict[str, Any]:
    image = {} if version is None else {"NewImage": {"V": {"N": version}}}
    return {"eventID": f"{item}-{version}-{number}", "dynamodb": {"Keys": {"PK": {"S": str(item)}}, **image}}


ORDERLY = [record(item, str(version)) for item in range(10) for version in range(20)] + [record(1, None)]


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        (ORDERLY, HOLDS),
        (list(reversed(ORDERLY)), DIFFERS),
        ([*ORDERLY, record(3, "7", 1)], DIFFERS),
        (ORDERLY[1:], UNCLEAR),
        ([], UNCLEAR),
    ],
    ids=["in order", "reversed", "twice", "one missing", "none"],
)
def test_the_order_of_a_stream(records: list[dict[str, Any]], verdict: Verdict) -> None:
    assert judge_order(records).verdict is verdict


INSERTED = {"eventName": "INSERT", "dynamodb": {"NewImage": {}}}


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        (
            [
                INSERTED,
                {
                    "eventName": "REMOVE",
                    "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
                    "dynamodb": {"OldImage": {}},
                },
            ],
            HOLDS,
        ),
        ([INSERTED, {"eventName": "REMOVE", "dynamodb": {"OldImage": {}}}], DIFFERS),
        ([INSERTED], UNCLEAR),
    ],
    ids=["by DynamoDB", "by somebody else", "not yet"],
)
def test_the_record_of_an_expired_item(records: list[dict[str, Any]], verdict: Verdict) -> None:
    assert judge_expiry(records, 7200).verdict is verdict


LIMITS = {"MaxReadRequestUnits": 40, "MaxWriteRequestUnits": 20}
RETURNED = {
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST", "LastUpdateToPayPerRequestDateTime": "now"},
    "OnDemandThroughput": LIMITS,
    "GlobalSecondaryIndexes": [{"OnDemandThroughput": LIMITS}],
}


@pytest.mark.parametrize(
    ("answer", "found", "verdict"),
    [
        (Answer({}), RETURNED, HOLDS),
        (Answer({}, "ValidationException", "one at a time"), RETURNED, DIFFERS),
        (Answer({}), {**RETURNED, "GlobalSecondaryIndexes": [{}]}, DIFFERS),
        (Answer({}), {**RETURNED, "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}, DIFFERS),
    ],
    ids=["all", "refused", "index without", "no time"],
)
def test_one_update_of_mode_and_maxima(answer: Answer, found: Mapping[str, Any], verdict: Verdict) -> None:
    assert judge_together(answer, found).verdict is verdict


LIMIT = "LimitExceededException"


@pytest.mark.parametrize(
    ("codes", "verdict"),
    [
        ([("", "")] * 4 + [("", LIMIT)], HOLDS),
        ([("", "")] * 5, DIFFERS),
        ([("", ""), ("", LIMIT)], DIFFERS),
        ([("", "")] * 4 + [("", "ValidationException")], DIFFERS),
        ([("", ""), (LIMIT, "")], UNCLEAR),
    ],
)
def test_the_number_of_returns_to_on_demand(codes: list[tuple[str, str]], verdict: Verdict) -> None:
    assert judge_switches(codes).verdict is verdict


@pytest.mark.parametrize(
    ("seconds", "back", "verdict"),
    [
        (1800.0, Answer({}), HOLDS),
        (3700.0, Answer({}), DIFFERS),
        (1800.0, Answer({}, LIMIT, "not yet"), DIFFERS),
    ],
)
def test_the_time_of_many_units(seconds: float, back: Answer, verdict: Verdict) -> None:
    assert judge_much(900.0, seconds, back).verdict is verdict


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (Measured(sent=200, admitted=101, lowest=100, highest=100), HOLDS),
        (Measured(sent=500, admitted=330, lowest=200, highest=390), HOLDS),
        (Measured(sent=200, admitted=84, lowest=100, highest=100), DIFFERS),
        (Measured(sent=500, admitted=470, lowest=200, highest=400), DIFFERS),
        (Measured(sent=105, admitted=100, lowest=100, highest=100), UNCLEAR),
    ],
)
def test_the_hot_key_experiment(measured: Measured, verdict: Verdict) -> None:
    assert judge_rates(measured).verdict is verdict


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [({9216: 200, 10241: 431}, HOLDS), ({9216: 200, 10241: 200}, DIFFERS), ({9216: 431, 10241: 431}, DIFFERS)],
)
def test_the_sizes_of_headers(statuses: Mapping[int, int], verdict: Verdict) -> None:
    assert judge_header_sizes(statuses).verdict is verdict


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (judge_sum(6.0), HOLDS),
        (judge_sum(3.0), DIFFERS),
        (judge_sum(0.0), DIFFERS),
        (judge_delivery(arrived=True, policies=9), HOLDS),
        (judge_delivery(arrived=False, policies=10), DIFFERS),
        (judge_characters(same=True, raw={"U+FFFE": Answer({}, "InvalidMessageContents")}), HOLDS),
        (judge_characters(same=False, raw={}), DIFFERS),
        (compare({"a": 1, "b": 2}, {"a": 1, "b": 2}), HOLDS),
        (compare({"a": 1, "b": 2}, {"a": 1}), DIFFERS),
    ],
)
def test_single_observations(outcome: Outcome, verdict: Verdict) -> None:
    assert outcome.verdict is verdict


def test_a_difference_names_what_was_expected_and_what_was_seen() -> None:
    assert compare({"a": 1, "b": 2}, {"a": 1, "b": 3}).seen == "b: 3 instead of 2"


def test_a_token_that_is_no_jwt_cannot_be_forged() -> None:
    assert forged("garbage") == {}


def dates(*seconds: float | None) -> Outcome:
    """Return what the check of dates says of a server that is so many seconds behind at each request; None: no date."""
    time, behind = [1_800_000_000.25], iter(seconds)

    def answered(**_: Any) -> dict[str, Any]:
        time[0] += 0.1
        late = next(behind)
        headers = {} if late is None else {"date": formatdate(int(time[0] - late), usegmt=True)}
        return {"ResponseMetadata": {"HTTPHeaders": headers}}

    def passes(pause: float) -> None:
        time[0] += pause

    service = SimpleNamespace(list_tables=answered, list_streams=answered)
    context = Context(lambda *_, **__: service, None, None, Clock(lambda: time[0], passes))  # type: ignore[arg-type]
    return clocks.answer_dates(context)


@pytest.mark.parametrize(
    ("late", "verdict", "words"),
    [
        ([0.0] * 40, Verdict.HOLDS, "33 dates agree; this machine's clock is -0.15 to +0.05 s off"),
        ([90.0] * 40, Verdict.HOLDS, "+89.85 to +90.05 s off"),
        ([0.0] * 20 + [3.0] * 20, Verdict.DIFFERS, "contradict each other by 2.80 s"),
        ([0.0] * 20 + [None] * 20, Verdict.DIFFERS, "an answer has no `Date`"),
    ],
)
def test_dates_of_one_clock_agree_however_far_this_machine_is_off(
    late: list[float | None], verdict: Verdict, words: str
) -> None:
    outcome = dates(*late)

    assert outcome.verdict is verdict
    assert words in outcome.seen
