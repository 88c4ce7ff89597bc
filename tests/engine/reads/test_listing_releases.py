"""Cursors that earlier releases issued continue their listings; `tests/releases/golden.py` keeps them."""

from collections.abc import Callable

import pytest

from dynashard import Dynashard
from dynashard.errors import InvalidCursorError, UnsupportedCursorError
from dynashard.reads.cursor_formats import ISSUED, READERS
from dynashard.transport import Transport
from tests.releases.golden import kept
from tests.releases.listings import CASES, Case, opened, rest, store

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

Open = Callable[..., Dynashard]
RELEASE, FORMAT_3 = "0.1.0", "cursor-format-3"
OLDER = [
    "2ECfM_lzc7o4BizbRUUopSCnIQwJKOtFKBko6SgYWxrrmRkCGiYWJromxUmwsAA.-h0k7X5mKHRMoveOwRUzOVR8Nr3dKOClecxNBsU2q7g",
    "2hl4_x3LwHwQAWyIwMTQ5LTMyIl0.-wR9FOs_Oi-oDXRXUS22D_LeygF7YTuqu7jFZEwSkW8",
]
"""Of the days before the first release, of format 2: one in turn and one ordered."""


@pytest.fixture(scope="module")
def listed(wire: Transport, create_table: Callable[[], str]) -> Open:
    """The kept listings' items in a table, opened while counts change or not."""
    table = create_table()
    store(opened(wire, table))
    return lambda changing=False: opened(wire, table, changing=changing)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_cursor_of_the_release_before_continues_where_it_ended(listed: Open, case: Case) -> None:
    check_continues(listed, case, RELEASE)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_cursor_of_format_3_continues_where_it_ended(listed: Open, case: Case) -> None:
    check_continues(listed, case, FORMAT_3)


def check_continues(listed: Open, case: Case, release: str) -> None:
    [issued] = [each for each in kept(release, "cursors") if each["name"] == case.name]

    # A resize that had begun may have been aborted meanwhile.
    for changing in {False, case.changing}:
        found = rest(listed(changing=changing), case, issued["cursor"])

        assert sorted(found) == sorted(issued["rest"])
        assert found == issued["rest"] or case.asked.get("order") != "ordered"


def test_the_kept_cursors_are_of_every_format_that_is_read() -> None:
    formats = {issued["cursor"][0].encode() for release in (RELEASE, FORMAT_3) for issued in kept(release, "cursors")}

    assert formats == {*READERS} >= {ISSUED}


@pytest.mark.parametrize("cursor", OLDER, ids=["in turn", "ordered"])
def test_a_cursor_of_a_format_that_is_not_read_is_refused_by_its_own_code(listed: Open, cursor: str) -> None:
    with pytest.raises(UnsupportedCursorError, match=r"format 2, .* formats 3, 4:") as raised:
        rest(listed(), CASES[0], cursor)

    assert (raised.value.status, raised.value.code, raised.value.field) == (400, "unsupported_cursor", "cursor")
    assert isinstance(raised.value, InvalidCursorError)
