"""An entity that is declared `epochs` over items of calculated placement under traffic; see `make check-epochs`."""

import pytest

from dynashard_checks.redeclared import Verdict, run

pytestmark = pytest.mark.engine


def nothing_was_wrong(verdict: Verdict) -> bool:
    return verdict.fine and min(verdict.created, verdict.deleted, verdict.read, verdict.listings) > 0


def test_no_item_is_moved_lost_or_invisible_when_its_entity_is_declared_by_epochs() -> None:
    verdict = run(500, counts=(16,), workers=3, pause=0.1)

    assert nothing_was_wrong(verdict), verdict
    assert verdict.counts == [4, 16]


@pytest.mark.deep
def test_none_of_100_000_items_is_moved_lost_or_invisible() -> None:
    verdict = run(100_000)

    assert nothing_was_wrong(verdict), verdict.as_dict()
    assert verdict.counts == [4, 16, 64]
