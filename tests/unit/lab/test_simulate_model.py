"""What the model admits and throttles, and that the layer reads its answers as it reads DynamoDB's."""

from math import inf
from typing import Any

import pytest

from dynashard.errors import KeyRangeThrottledError, TableThrottledError, ThrottledError
from dynashard.transport.classification import Refusal, classify, throttle_names
from dynashard_lab.simulate.capacity import OnDemand, Provisioned
from dynashard_lab.simulate.model import TABLE, Access, TableModel
from dynashard_lab.simulate.resource import Capacities, Resource
from dynashard_lab.simulate.run import ARN
from dynashard_lab.simulate.settings import Settings
from dynashard_lab.simulate.throttle import Throttle, cancelled

pytestmark = pytest.mark.unit


def on_demand(units: float = 4_000, *, maximum: float = inf, quota: float = 40_000, settings: Settings) -> Capacities:
    return Capacities(
        OnDemand(units, quota, settings, maximum=maximum), OnDemand(units * 3, quota, settings, maximum=maximum)
    )


def provisioned(writes: float, reads: float, settings: Settings) -> Capacities:
    return Capacities(Provisioned(writes, settings), Provisioned(reads, settings))


def model(
    table: Capacities | None = None, index: Capacities | None = None, settings: Settings | None = None
) -> TableModel:
    settings = settings or Settings()
    indexes = {"GSI1": Resource(f"{ARN}/index/GSI1", index, settings)} if index else {}
    return TableModel(Resource(ARN, table or on_demand(settings=settings), settings), indexes, settings)


def write(key: str, units: float = 1.0, index: str = TABLE) -> Access:
    return Access(key, "sort", units, target=index)


def classified(throttle: Throttle) -> Any:
    return classify(Refusal("PutItem", 400, throttle.code, throttle.message, throttle.body()))


def until_throttled(table: TableModel, *accesses: Access) -> Throttle:
    for _ in range(100_000):
        throttle = table.admit(0.0, *accesses)
        if throttle is not None:
            return throttle
    raise AssertionError("nothing was throttled")


@pytest.mark.parametrize(("reading", "rate"), [(False, 1_000), (True, 3_000)])
def test_a_key_gets_the_limit_of_its_partition(*, reading: bool, rate: int) -> None:
    table, access = model(), Access("hot", "sort", 1.0, reading)

    admitted = sum(table.admit_many(second, 10_000, [access])[0] for second in range(1, 61))

    assert admitted == rate * 60


def test_reads_and_writes_of_a_partition_are_limited_apart() -> None:
    table = model()

    until_throttled(table, write("hot"))

    assert table.admit(0.0, Access("hot", "sort", 1.0, reading=True)) is None


def test_a_hot_partition_is_throttled_with_its_key_range() -> None:
    throttle = until_throttled(model(), write("hot"))

    error = classified(throttle)

    assert throttle.code == "ThrottlingException"
    assert throttle.body()["throttlingReasons"] == [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": ARN}]
    assert type(error) is KeyRangeThrottledError


@pytest.mark.parametrize(
    ("capacities", "code", "reason"),
    [
        (
            provisioned(5, 5, Settings()),
            "ProvisionedThroughputExceededException",
            "TableWriteProvisionedThroughputExceeded",
        ),
        (on_demand(maximum=10, settings=Settings()), "ThrottlingException", "TableWriteMaxOnDemandThroughputExceeded"),
        (on_demand(quota=10, settings=Settings()), "RequestLimitExceeded", "TableWriteAccountLimitExceeded"),
    ],
    ids=["provisioned", "maximum", "account"],
)
def test_a_limit_of_the_table_is_named_and_is_no_key_range(capacities: Capacities, code: str, reason: str) -> None:
    throttle = until_throttled(model(capacities), write("any"))

    error = classified(throttle)

    assert (throttle.code, [each.reason for each in throttle.reasons]) == (code, [reason])
    assert type(error) is TableThrottledError
    assert throttle_names(Refusal("PutItem", 400, throttle.code, "", throttle.body())) == (reason,)


def test_above_the_on_demand_ceiling_the_named_limit_is_an_assumption() -> None:
    found = []
    for limit in ("KeyRangeThroughput", "AccountLimit"):
        table = model(settings=Settings(ceiling_limit=limit))
        refused = [table.admit(0.0, write(f"key{number}")) for number in range(6_000)]
        found.append({each.reason for throttle in refused if throttle for each in throttle.reasons})

    assert "TableWriteAccountLimitExceeded" in found[1]
    assert found[0] == {"TableWriteKeyRangeThroughputExceeded"}


def test_a_provisioned_table_saves_five_minutes() -> None:
    table = model(provisioned(100, 100, Settings()))

    idle = [table.admit_many(at, 100_000, [write(f"key{at}")])[0] for at in (10_000, 10_001)]

    # 30,000 units are saved; a partition gives 1,000 of them at once, and 2 are enough for 100 provisioned units.
    assert idle == [1_000, 1_000]
    burst = sum(table.admit_many(10_001 + at, 100_000, [write("hot")])[0] for at in range(1, 100))
    assert burst + 2_000 == pytest.approx(30_000 + 100 * 100, rel=0.02)


def test_a_throttled_request_consumes_nothing() -> None:
    table = model(index=provisioned(1, 1, Settings()))
    until_throttled(table, write("a"), write("a", index="GSI1"))
    consumed = table.resources[TABLE].writes.consumed

    throttle = table.admit(0.0, write("a"), write("a", index="GSI1"))

    assert throttle is not None
    assert table.resources[TABLE].writes.consumed == consumed


def test_a_hot_index_throttles_writes_to_the_table_in_its_name() -> None:
    table = model(index=on_demand(settings=Settings()))
    admitted, throttle = table.admit_many(0.0, 2_000, [write("a"), write("status", 2.0, "GSI1")])

    assert throttle is not None
    error = classified(throttle)
    assert admitted == 500
    assert [each.index for each in error.reasons] == ["GSI1"]
    assert type(error) is KeyRangeThrottledError
    assert table.admit(0.0, write("a")) is None


def test_two_keys_on_one_partition_share_it_until_heat_splits_it() -> None:
    # Both lie in the first quarter of the key space, one of the table's 4 partitions.
    table, one, other = model(), "user.v1.User:acme", "user.v1.User:umbrella"
    by_minute = []

    for minute in range(13):
        admitted = 0
        for second in range(60):
            order = (one, other) if second % 2 else (other, one)
            at = minute * 60 + second + 1.0
            admitted += sum(table.admit_many(at, 900, [write(key)])[0] for key in order)
        by_minute.append(admitted // 60)

    assert by_minute[:10] == [1_000] * 10
    assert by_minute[11:] == [1_800] * 2


def test_actions_of_a_transaction_cost_double_and_are_admitted_together_or_not_at_all() -> None:
    table = model()
    actions = [[write("hot", 100.0)], [write("hot", 100.0)]]

    outcomes = [table.transact(0.0, actions) for _ in range(3)]

    assert outcomes[:2] == [[None, None]] * 2
    assert all(outcomes[2])
    assert table.resources[TABLE].writes.consumed == 800


def test_a_throttled_transaction_is_cancelled_with_a_code_for_each_action() -> None:
    table = model(index=on_demand(settings=Settings()))
    until_throttled(table, write("status", index="GSI1"))

    outcome = table.transact(0.0, [[write("a"), write("status", index="GSI1")], [write("b")]])
    body = cancelled(outcome)
    error: Any = classify(Refusal("TransactWriteItems", 400, "TransactionCanceledException", "", body))

    assert [reason["Code"] for reason in body["CancellationReasons"]] == ["ThrottlingError", "None"]
    assert isinstance(error, ThrottledError)
    assert error.index_blamed


def test_a_transaction_beyond_the_quota_is_a_throttle_of_the_table() -> None:
    table = model(on_demand(quota=10, settings=Settings()))
    until_throttled(table, write("a"))

    body = cancelled(table.transact(0.0, [[write("b")]]))

    error = classify(Refusal("TransactWriteItems", 400, "TransactionCanceledException", "", body))
    assert type(error) is TableThrottledError


def test_units_that_are_known_afterwards_are_charged_without_asking() -> None:
    table = model()

    table.charge(0.0, Access("hot", "", 9_000.0, reading=True))

    assert [table.admit(at, Access("hot", "", 1.0, reading=True)) is None for at in (0.0, 1.9, 2.1)] == [
        False,
        False,
        True,
    ]
