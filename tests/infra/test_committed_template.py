"""The templates that the local stack reads are those that CDK synthesises."""

import pytest

from dynashard_cdk.local_template import templates, without_hashes
from dynashard_local.template import FOLDER
from tests.infra.conftest import Synthesised
from tests.infra.templates import ROOT

pytestmark = pytest.mark.infra

CHANGED = "The infrastructure has changed: run `make template` and commit packages/local/dynashard_local/templates"


def committed() -> dict[str, str]:
    return {path.name: path.read_text() for path in FOLDER.iterdir()}


def test_the_committed_local_templates_are_the_synthesised_ones(synthesised: Synthesised) -> None:
    assert committed() == without_hashes(synthesised("local", None).folder), CHANGED


@pytest.mark.deep
def test_the_backends_own_program_synthesises_them_too() -> None:
    assert committed() == templates(ROOT), CHANGED
