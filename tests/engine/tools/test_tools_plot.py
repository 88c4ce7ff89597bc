"""`dynashard plot`: pictures of live data."""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from domain.samples.users import User
from dynashard.service import Collection
from dynashard_tools.plot.order import Listed, inversions, ranks
from tests.engine.command_line import CommandLine

pytestmark = pytest.mark.engine

Users = Collection[User]
PNG = b"\x89PNG\r\n\x1a\n"
ITEMS = 120
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def people(users: Users, tenant: str) -> Users:
    new = [User(tenant_id=tenant, id=f"u{n:03}", email=f"u{n}@b", display_name="U") for n in range(ITEMS)]
    users.batch_write(put=new)
    return users


def test_the_order_of_a_listing_is_drawn_with_a_dot_for_each_item(
    command_line: CommandLine, tmp_path: Path, tenant: str
) -> None:
    file = tmp_path / "order.svg"

    ended = command_line.run("plot", "order", "users", tenant, str(file), "--page", "10")

    assert ended.status == 0, ended.err
    assert "120 items" in ended.out
    drawn = ET.fromstring(file.read_bytes())  # noqa: S314 - our own file
    [dots] = [each for each in drawn.iter(f"{SVG}g") if each.get("id", "").startswith("PathCollection")]
    assert len(list(dots.iter(f"{SVG}use"))) == ITEMS


@pytest.mark.parametrize(("order", "late"), [("ordered", False), ("shard", True), ("round_robin", True)])
def test_only_an_ordered_listing_has_no_late_item(
    command_line: CommandLine, tmp_path: Path, tenant: str, order: str, *, late: bool
) -> None:
    file = tmp_path / "order.png"

    printed = command_line.run("plot", "order", "users", tenant, str(file), "--order", order).out

    assert file.read_bytes().startswith(PNG)
    assert (" 0 of them out of order" not in printed) is late


def test_the_same_data_give_the_same_picture(command_line: CommandLine, tmp_path: Path, tenant: str) -> None:
    pictures = []
    for name in ("a.svg", "b.svg"):
        assert command_line.run("plot", "shards", "users", tenant, str(tmp_path / name)).status == 0
        pictures.append((tmp_path / name).read_bytes())

    assert pictures[0] == pictures[1]


def test_a_limit_draws_part_of_a_listing(command_line: CommandLine, tmp_path: Path, tenant: str) -> None:
    printed = command_line.run("plot", "order", "users", tenant, str(tmp_path / "a.png"), "--limit", "7").out

    assert "7 items" in printed


def test_a_partition_without_items_has_no_order_to_draw(command_line: CommandLine, tmp_path: Path, tenant: str) -> None:
    ended = command_line.run("plot", "order", "users", f"{tenant}-of-nobody", tmp_path / "a.png")

    assert (ended.status, "has no items" in ended.err) == (1, True)
    assert not (tmp_path / "a.png").exists()


def test_a_picture_without_the_package_that_draws_it_names_it(
    command_line: CommandLine, tmp_path: Path, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    refused = command_line.run("plot", "shards", "users", tenant, tmp_path / "shards.svg")

    assert (refused.status, list(tmp_path.glob("*.svg"))) == (1, [])
    assert refused.err == (
        'error: this needs matplotlib, which is not installed: pip install "dynashard-tools[pictures]"\n'
    )


def test_a_file_of_another_format_is_refused_before_anything_is_read(
    command_line: CommandLine, tmp_path: Path, tenant: str
) -> None:
    for what in ("order", "shards"):
        ended = command_line.run("plot", what, "users", tenant, str(tmp_path / "a.gif"))
        assert (ended.status != 0, "ends in .png or .svg" in ended.err) == (True, True)


def test_ranks_are_places_in_the_order_of_bytes() -> None:
    brought = [Listed("b", 0), Listed("Z", 1), Listed("\uffff", 2), Listed("\U00010000", 3), Listed("a", 4)]

    assert ranks(brought) == [2, 0, 3, 4, 1]
    assert inversions(ranks(brought)) == 2
    assert inversions([]) == inversions([0]) == 0
