"""The TypeScript client is generated from the committed OpenAPI document, strictly typed, and tested in node."""

import json
import re

import pytest

from tests.typescript import CLIENT, ROOT, compiled, run, types_of_document

pytestmark = pytest.mark.unit


def test_the_types_are_those_of_the_openapi_document(tmp_path_factory: pytest.TempPathFactory) -> None:
    generated = types_of_document(tmp_path_factory)

    assert generated.read_text() == (CLIENT / "src" / "schema.ts").read_text(), "the API has changed: run `make client`"


def test_the_types_have_every_operation_of_the_openapi_document() -> None:
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"].values()
    expected = {each["operationId"] for path in paths for method, each in path.items() if method != "parameters"}

    _, _, operations = (CLIENT / "src" / "schema.ts").read_text().partition("export interface operations {")

    assert set(re.findall(r"^    (\w+): \{$", operations, re.MULTILINE)) == expected


def test_the_client_type_checks_strictly_and_passes_its_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = compiled(tmp_path_factory)

    printed = run(
        "node",
        "--test",
        "--test-reporter=tap",
        CLIENT / "tests" / "client.test.mjs",
        environment={"DIST": str(place / "src")},
    )

    assert "# fail 0" in printed
    assert "# pass 0" not in printed
