"""The TypeScript client: generated from the committed OpenAPI document, strictly typed, and tested in node."""

from pathlib import Path

import pytest

from tests.typescript import BIN, CLIENT, compiled, run

pytestmark = pytest.mark.unit


def test_its_types_are_those_of_the_openapi_document(tmp_path: Path) -> None:
    generated = tmp_path / "schema.ts"

    run(BIN / "openapi-typescript", "docs/openapi.json", "--default-non-nullable", "false", "--output", generated)

    assert generated.read_text() == (CLIENT / "src" / "schema.ts").read_text(), "the API has changed: run `make client`"


def test_it_is_typed_strictly_and_does_what_its_tests_say(tmp_path: Path) -> None:
    place = compiled(tmp_path)

    told = run("node", "--test", CLIENT / "tests" / "client.test.mjs", environment={"DIST": str(place / "src")})

    assert "# fail 0" in told
    assert "# pass 0" not in told
