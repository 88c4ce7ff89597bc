"""The templates that the local stack reads are those that CDK synthesises."""

import pytest

from dynashard_cdk.local_template import templates
from dynashard_local.template import FOLDER
from tests.infra.templates import ROOT

pytestmark = pytest.mark.infra


def test_the_committed_local_templates_are_the_synthesised_ones() -> None:
    committed = {path.name: path.read_text() for path in FOLDER.iterdir()}

    assert committed == templates(ROOT), (
        "The infrastructure has changed: run `make template` and commit packages/local/dynashard_local/templates"
    )
