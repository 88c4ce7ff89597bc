"""Entities are loaded one by one where that is asked for, and then behave as with all of them loaded."""

import json
import subprocess
import sys
from typing import Any

import pytest

import domain
from domain import ENTITIES, FAMILY_LISTINGS
from dynashard import definition
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
from domain import ENTITIES
from dynashard import definition
{RULES}
def loaded(path):
    assert not [name for name in sys.modules if name.startswith("domain.")]
    return rules(definition(next(each for each in ENTITIES if each.path == path).entity))

with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as processes:
    paths = [each.path for each in ENTITIES]
    print(json.dumps(dict(zip(paths, processes.map(loaded, paths, chunksize=1)))))
"""
"""Prints the rules of each entity, in a copy of a process that has loaded none of them."""


def in_a_new_process(program: str) -> str:
    done = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_entity_that_is_loaded_alone_has_the_rules_that_others_add() -> None:
    space: dict[str, Any] = {}
    exec(RULES, space)  # noqa: S102 - the text above, which the other processes run too
    assert domain.User is ENTITIES[0].entity

    alone = json.loads(in_a_new_process(ALONE))

    assert alone == {each.path: space["rules"](definition(each.entity)) for each in ENTITIES}


def test_entities_are_named_without_loading_their_models() -> None:
    program = "import sys, domain; print([name for name in sys.modules if name.startswith('domain.')])"

    assert in_a_new_process(program).strip() == "[]"


def test_a_name_of_the_domain_loads_all_declarations() -> None:
    program = "import sys; from domain import Incident; from dynashard import definition\n"
    program += "print('domain.users' in sys.modules, list(definition(Incident).checks))"

    assert in_a_new_process(program).startswith("True ['")


def test_the_domain_has_the_names_that_it_lists() -> None:
    assert all(getattr(domain, name) is not None for name in domain.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nobody'"):
        domain.Nobody  # noqa: B018


def test_families_are_named_as_their_entities() -> None:
    exposed = {each.entity for each in ENTITIES}

    assert all(exposed.issuperset(family.entities) for family in FAMILY_LISTINGS)
