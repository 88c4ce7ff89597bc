"""The direct transport against the engine, with the engine's own answers and errors."""

from collections.abc import Iterator

import pytest

from dynashard.errors import ConditionFailedError, EngineError, TransactionCanceledError
from dynashard.transport import Call, Transport, connect, metered
from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.interface import Consumed

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def direct(engine_url: str) -> Iterator[Transport]:
    connected = connect(engine_url, "eu-west-1", access_key="local", secret_key="local")  # noqa: S106
    assert isinstance(connected, DirectTransport)
    yield connected
    connected.close()


def test_requests_answers_and_refusals_are_those_of_the_engine(direct: Transport, table: str) -> None:
    def item(sort: str) -> dict[str, dict[str, str]]:
        return {"PK": {"S": "a"}, "SK": {"S": sort}, "photo": {"B": "AAEC"}, "text": {"S": 'ä "x" \U0001f600'}}

    if_absent = {"ConditionExpression": "attribute_not_exists(PK)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    puts = [Call("PutItem", {"TableName": table, "Item": item(f"{n:03d}")}) for n in range(30)]
    keys = [{"PK": {"S": "a"}, "SK": {"S": f"{n:03d}"}} for n in range(30)]

    with metered() as meter:
        direct.call_all(puts)
        found = direct.call_all([Call("GetItem", {"TableName": table, "Key": key}) for key in keys])
    with pytest.raises(ConditionFailedError) as refused:
        direct.call("PutItem", {**puts[0].request, **if_absent})
    with pytest.raises(TransactionCanceledError) as cancelled:
        direct.call("TransactWriteItems", {"TransactItems": [{"Put": {**puts[0].request, **if_absent}}]})
    with pytest.raises(EngineError, match="Create the table"):
        direct.call("GetItem", {"TableName": "no-such-table", "Key": keys[0]})

    assert [answer["Item"] for answer in found] == [item(f"{n:03d}") for n in range(30)]
    assert meter.consumed == Consumed(15.0, 30.0, 60)
    assert refused.value.item == item("000")
    assert [reason.code for reason in cancelled.value.reasons] == ["ConditionalCheckFailed"]
