"""Where a backfill goes on in a segment of the table if others delete the item that it has come to."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dynashard.backfills import Options
from dynashard.testing.faults import Fault, FaultyTransport, Send
from dynashard.transport import Transport
from dynashard.transport.interface import Wire
from dynashard_checks.changed_models.entities import TENANT, OldPart
from tests.engine.backfills.backfill_world import backfill_of, filled
from tests.engine.resharding.resharding_world import Moving, moving_world

pytestmark = pytest.mark.engine

SEGMENTS = Options(tasks=2, workers=1, chunk=4)


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        filled(made, 12)
        yield made


def gone_during(world: Moving, scans: int, *, back: bool) -> Fault:
    """Delete the item at the position of so many Scans before each is executed, and store it again after."""
    left = [scans]

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        if "ExclusiveStartKey" not in request or not left[0]:
            return send(request)
        left[0] -= 1
        name = request["ExclusiveStartKey"]["SK"]["S"]
        world.of(OldPart).delete(tenant=TENANT, id=name)
        answer = send(request)
        if back:
            world.of(OldPart).create(OldPart(tenant=TENANT, id=name, name="a b", amount="1"))
        return answer

    return Fault("Scan", strike, nth=None)


@pytest.mark.parametrize("scans", [1, 2])
@pytest.mark.parametrize("back", [False, True], ids=["gone", "stored again"])
def test_no_item_of_its_segment_is_left_out(world: Moving, scans: int, *, back: bool) -> None:
    report = backfill_of(
        world, "migrate", FaultyTransport(world.inner, [gone_during(world, scans, back=back)]), SEGMENTS
    ).run()

    assert report.complete
    assert [item["SK"]["S"] for item in world.raw() if "Ver" not in item] == []
