"""The clients against `make run`: Python over REST and direct invocation, and the TypeScript client's tour."""

import json
from contextlib import closing

import pytest

from domain.samples.users import User
from dynashard.reads.cursor import _signer_of
from dynashard_client import AlreadyExistsError, Client, ValidationFailedError
from dynashard_local.functions.specs import CURSOR_KEY_FILE
from tests.e2e.local_process import LocalProcess
from tests.engine.clients.clients_on_engine import RESOURCES, lambda_client
from tests.typescript import CLIENT, compiled, run

pytestmark = pytest.mark.e2e


def test_items_written_by_one_client_are_read_by_the_other(local_stack: LocalProcess) -> None:
    token = local_stack.client(None).post("/local/tokens", json={"tenant_id": "clients"}).json()["token"]
    direct = Client.lambda_(
        "commands", tenant="clients", client=lambda_client(local_stack.url), resources=RESOURCES
    ).collection(User)
    rest = Client.rest(local_stack.url, token=token, resources=RESOURCES, tenant="clients").collection(User)

    created = direct.create(User(tenant_id="clients", email="ada@example.com", display_name="Ada"), idempotency_key="k")
    patched = rest.update(created, {"department": "maths"}, if_match=created.revision)

    assert direct.get(created, consistent=True) == patched
    with pytest.raises(AlreadyExistsError):
        rest.create(created)
    direct.create(created.model_copy(update={"id": "grace"}))
    page = direct.list(order="ordered", limit=1)
    assert page.cursor
    assert [user.id for user in rest.items(order="ordered", limit=1, cursor=page.cursor)] == ["grace"]
    with pytest.raises(ValidationFailedError):
        direct.update(created, {"email": "nobody"})


def test_the_tour_of_the_typescript_client_succeeds(
    local_stack: LocalProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = compiled(tmp_path_factory)

    printed = json.loads(run("node", place / "examples" / "tour.js", local_stack.url))

    assert printed == {
        "read": "Ada",
        "part": ["ada@example.com", None],
        "silent": [204, True, "return=minimal"],
        "fresh": True,
        "patched": "Countess",
        "listed": 3,
        "sizes": [2, 1],
        "counted": [True, True],
        "codes": ["ok", "not_found"],
        "accepted": "string",
        "refusals": {
            "missing": "not_found",
            "stale": "revision_mismatch",
            "invalid": "validation_failed display_name email",
            "stranger": "unauthenticated",
        },
    }


def test_the_typescript_client_goes_on_after_cursors_that_the_api_refuses(
    local_stack: LocalProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = compiled(tmp_path_factory)
    keys = [(local_stack.data_dir / CURSOR_KEY_FILE).read_text().strip()]
    older = _signer_of(keys).sign(b"2AAAA").decode()
    ids = [f"{n:02d}" for n in range(20)]
    with closing(local_stack.client("resuming")) as client:
        for number, name in enumerate(ids):
            user = {"id": name, "email": f"{number % 2}@example.com", "display_name": "U"}
            client.post("/v1/users", json=user).raise_for_status()
        token = client.headers["Authorization"].removeprefix("Bearer ")

    script = CLIENT / "tests" / "resuming.mjs"
    printed = json.loads(run("node", script, local_stack.url, token, older, environment={"DIST": str(place / "src")}))

    assert printed.pop("refused") == "unsupported_cursor"
    ties = printed.pop("ties")
    assert (sorted(ties[:10]), sorted(ties[10:])) == (ids[::2], ids[1::2])
    assert sorted(printed.pop("inTurn")) == ids
    assert printed == {"ordered": ids, "descending": ids[::-1], "prefix": ids[10:]}
