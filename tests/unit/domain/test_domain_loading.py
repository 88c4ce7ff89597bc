"""The domain is found by itself; with an index, entities are loaded one by one, and behave as with all loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dynashard import Entity, Key, Registry, definition
from dynashard_serving.declare import Exposed
from dynashard_serving.domain import INDEX, domain_of
from dynashard_serving.numbers import Sequence
from tests.domain_served import ENTITIES, FAMILY_LISTINGS, bundle_in
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.unit

RULES = """
def rules(known):
    templates = [known.partition, known.sort, *(t for i in known.indexes.values() for t in (i.partition, i.sort))]
    return [sorted(known.checks), [sorted(template.reserved) for template in templates]]
"""
"""What writes of an entity must keep to, besides its own declaration: others may add to it."""

ALONE = f"""
import json
import multiprocessing
import sys
from dynashard import Entity, Key, Registry, definition
from dynashard_serving.domain import declared
{RULES}
def loaded(path):
    assert not [name for name in sys.modules if name.startswith(("domain.", "dynashard_serving.discovery"))]
    found = declared().roots[path]()
    return rules(definition(found.entity)) if hasattr(found, "entity") else None

with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as processes:
    paths = list(declared().roots)
    print(json.dumps(dict(zip(paths, processes.map(loaded, paths, chunksize=1)))))
"""
"""Prints the rules of each entity, in a copy of a process that has loaded none of them."""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The domain as a bundle holds it, with an index, in a folder for the path of imports."""
    return bundle_in(tmp_path)


def in_a_new_process(program: str, folder: Path | None = None) -> str:
    done = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", program],
        env={**os.environ, **({} if folder is None else {"PYTHONPATH": str(folder)})},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_entity_that_is_loaded_alone_has_the_rules_that_others_add(bundle: Path) -> None:
    space: dict[str, Any] = {}
    exec(RULES, space)  # noqa: S102 - the text above, which the other processes run too

    alone = json.loads(in_a_new_process(ALONE, bundle))

    together = {each.path: space["rules"](definition(each.entity)) for each in ENTITIES if each.operations}
    assert together.items() <= alone.items()
    assert {path for path, found in alone.items() if found is None} == {
        "contacts", "feed", "follows", "likes", "my-incidents", "on-call", "revenue", "roll-ups", "seats"
    }  # fmt: skip


def test_an_index_leads_to_the_same_declarations(bundle: Path) -> None:
    program = (
        "from dynashard_serving.domain import declared\n"
        "found = declared().declarations\n"
        "print([each.path for each in found.entities], [each.path for each in found.served],\n"
        "      [each.name for each in found.roll_ups], len(found.copies), len(found.edges), sorted(declared().roots))"
    )

    assert in_a_new_process(program, bundle) == in_a_new_process(program)


def test_an_index_that_names_nothing_served_is_refused(bundle: Path) -> None:
    index = json.loads((bundle / "domain" / INDEX).read_text())
    index["roots"]["users"] = ["EmailAddress", ["domain.samples.users"]]
    (bundle / "domain" / INDEX).write_text(json.dumps(index))
    program = (
        "from dynashard.errors import ConfigurationError\n"
        "from dynashard_serving.domain import declared\n"
        "try:\n    declared().roots['users']()\n"
        "except ConfigurationError as error:\n    print(error)\n"
    )

    expected = "the index names domain.samples.users.EmailAddress, which is not served: build the bundle again"
    assert in_a_new_process(program, bundle).strip() == expected


def test_families_are_of_entities_that_are_declared() -> None:
    exposed = {each.entity for each in ENTITIES}

    assert all(exposed.issuperset(family.entities) for family in FAMILY_LISTINGS)


@pytest.mark.parametrize("numbered", [None, "number"])
def test_the_last_numbers_are_an_entity_of_domains_that_number_items(numbered: str | None) -> None:
    class Ticket(Entity, name="loaded.v1.Ticket", key=Key("{tenant_id}", "{id}"), registry=Registry()):
        tenant_id: str
        id: str
        number: int = 0

    models = domain_of(Exposed(Ticket, "tickets", numbered=numbered)).models

    expected: list[type[Entity]] = [Ticket, Sequence] if numbered else [Ticket]
    assert list(models) == expected
