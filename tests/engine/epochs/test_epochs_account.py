"""A purge of an account finds what any epoch of its partitions has placed."""

import pytest

from domain.samples.notifications import Notification
from dynashard import Dynashard, definition
from dynashard.resharding import Scope
from dynashard_tools.account.purging import purge
from dynashard_tools.account.tenant_data import TenantData
from dynashard_tools.topology.facts import largest_count
from tests.engine.epochs.epochs_world import Epochs

pytestmark = pytest.mark.engine

NOTIFICATION = definition(Notification)


def scope(tenant: str) -> Scope:
    return Scope(NOTIFICATION, f"{NOTIFICATION.prefix}:{tenant}")


def notify(world: Epochs, db: Dynashard, number: int, tenant: str = "abc") -> None:
    """Store notifications of now."""
    items = db.collection(Notification)
    for _ in range(number):
        items.create(tenant_id=tenant, id=world.id(), user_id="ada", channel="sms", text="Down")


@pytest.fixture
def grown(world: Epochs) -> Dynashard:
    """Store notifications of an account in 1, 16 and then 4 shards, and of another account."""
    db = world.process()
    notify(world, db, 3, "other")
    for count in (16, 4):
        notify(world, db, 10)
        world.grow(count, scope("abc"), world.resharder(entities=[Notification]))
        world.clock.now += 1
    notify(world, db, 10)
    return db


def tenant_data(world: Epochs) -> TenantData:
    topology = world.resharder().topology
    return TenantData(
        world.inner, world.table, [Notification], largest_count=lambda *named: largest_count(topology, *named)
    )


@pytest.mark.usefixtures("grown")
def test_an_export_reads_the_shards_of_every_epoch_and_of_nobody_else(world: Epochs) -> None:
    read: list[int] = []
    [found] = tenant_data(world).partitions("abc", world.clock.now, read.append)

    assert (found.entity.name, sum(read)) == ("notification.v1.Notification", 30)


@pytest.mark.usefixtures("grown")
def test_a_purge_finds_the_items_of_every_epoch_and_leaves_those_of_others(world: Epochs) -> None:
    done = purge(tenant_data(world), "abc", scanned=lambda _: None, removed=lambda _: None)

    assert done.total == 30
    assert {place.rsplit(":", 1)[0] for place in world.raw().values()} == {"notification.v1.Notification:other"}


def test_an_epoch_that_is_pending_is_purged_too(world: Epochs, grown: Dynashard) -> None:
    resharder = world.resharder(entities=[Notification])
    resharder.start(scope("abc"), 64)
    resharder.advance(scope("abc").key)
    notify(world, grown, 1)

    assert purge(tenant_data(world), "abc", scanned=lambda _: None, removed=lambda _: None).total == 31
    assert len(world.raw()) == 3
