"""The local stack over HTTP: the issuer, and the gateway in front of the real function."""

import re
import subprocess
from typing import Any

import httpx
import jwt
import pytest

from dynashard_local.stack import Stack
from tests.e2e.local_process import LocalProcess
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def anyone(local_stack: LocalProcess) -> httpx.Client:
    return local_stack.client(None)


@pytest.fixture(scope="module")
def tenant(local_stack: LocalProcess) -> httpx.Client:
    return local_stack.client("abc")


def test_only_health_and_the_documentation_are_open(anyone: httpx.Client) -> None:
    for path in ("/v1/health", "/v1/openapi.json", "/v1/docs", "/v1/docs/swagger-ui.js"):
        assert anyone.get(path).status_code == 200, path
    for path in ("/v1/users", "/v1/users/1", "/v1/anything"):
        refused = anyone.get(path)
        assert (refused.status_code, refused.json()) == (401, {"message": "Unauthorized"}), path
        assert refused.headers["www-authenticate"] == "Bearer"


def test_browsers_compile_the_patterns_of_the_forms(anyone: httpx.Client) -> None:
    # Browsers ignore a pattern that does not compile under the flag `v`.
    compiled = "for (const each of process.argv.slice(1)) console.log(new RegExp(`^(?:${each})$`, 'v').test('abc-1'))"
    patterns = re.findall(r'pattern="([^"]*)"', anyone.get("/").text + anyone.get("/v1/docs").text)

    said = subprocess.run(["node", "-e", compiled, *patterns], capture_output=True, text=True, check=True)  # noqa: S603, S607

    assert said.stdout.split() == ["true"] * len(patterns) != []


@pytest.mark.parametrize("changes", [{"exp": 1}, {"iss": "http://elsewhere"}, {"aud": "another"}])
def test_an_invalid_token_is_401(anyone: httpx.Client, changes: dict[str, Any]) -> None:
    token = anyone.post("/local/tokens", json={"tenant_id": "abc", "claims": changes}).json()["token"]

    refused = anyone.get("/v1/users", headers={"Authorization": f"Bearer {token}"})

    assert (refused.status_code, refused.json()) == (401, {"message": "Unauthorized"})
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


def test_another_tool_can_verify_a_token_by_discovery(anyone: httpx.Client) -> None:
    issued = anyone.post("/local/tokens", json={"tenant_id": "abc", "subject": "ada", "expires_in": 60}).json()
    issuer = f"{str(anyone.base_url).rstrip('/')}/local"

    discovery = anyone.get("/local/.well-known/openid-configuration").json()
    keys = jwt.PyJWKSet.from_dict(anyone.get(discovery["jwks_uri"]).json())
    key = keys[jwt.get_unverified_header(issued["token"])["kid"]]
    claims = jwt.decode(issued["token"], key, issuer=issuer, options={"verify_aud": False})

    assert discovery["issuer"] == issuer
    assert (claims["tenant_id"], claims["sub"], claims["exp"] - claims["iat"]) == ("abc", "ada", 60)
    assert issued["expires_in"] == 60


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"tenant_id": ""}', '{"tenant_id": 5}', '{"tenant_id": "a", "tenant": "b"}']
)
def test_an_invalid_token_request_is_422_with_the_reason(anyone: httpx.Client, body: str) -> None:
    refused = anyone.post("/local/tokens", content=body)

    assert refused.status_code == 422
    assert refused.json()["errors"][0]["message"]


@pytest.mark.parametrize("tenant", ["a b", "abc\n", "a:b", "a" * 65, "null"])
def test_a_tenant_that_the_api_refuses_is_refused_unless_it_is_set_as_a_claim(
    anyone: httpx.Client, tenant: str
) -> None:
    refused = anyone.post("/local/tokens", json={"tenant_id": tenant})
    forced = anyone.post("/local/tokens", json={"tenant_id": "abc", "claims": {"tenant_id": tenant}}).json()["token"]

    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["tenant_id"]
    assert anyone.get("/v1/users", headers={"Authorization": f"Bearer {forced}"}).status_code == 403


def test_a_test_acts_for_callers_with_other_rights(anyone: httpx.Client) -> None:
    stack = Stack(str(anyone.base_url), {}, {})

    with stack.client("abc", subject="ada", scopes=["incidents:read"]) as ada:
        assert ada.get("/v1/incidents").status_code == 200
        assert ada.post("/v1/incidents", json={}).status_code == 403
    with stack.client("abc", subjct="ada") as nobody, pytest.raises(ValueError, match=r"no token for .*subjct"):
        nobody.get("/v1/contacts")


def test_a_page_that_resolves_its_own_name_to_this_machine_gets_nothing(anyone: httpx.Client) -> None:
    refused = anyone.post("/local/tokens", json={"tenant_id": "abc"}, headers={"Host": "evil.example:8000"})

    assert refused.status_code == 400
    assert "token" not in refused.text


def test_a_user_is_created_read_changed_listed_and_deleted(tenant: httpx.Client) -> None:
    created = tenant.post("/v1/users", json={"email": "ada@example.com", "display_name": "Ada"})
    location = created.headers["location"]
    patched = tenant.patch(
        location, content=b'{"department": "eng"}', headers={"Content-Type": "application/merge-patch+json"}
    )
    read = tenant.get(location)
    listed = tenant.get("/v1/users", params={"limit": 10})
    deleted = tenant.delete(location, headers={"If-Match": read.headers["etag"]})

    assert created.status_code == 201
    assert re.fullmatch(r"/v1/users/[0-9A-Za-z]{27}", location)
    assert patched.status_code == 200
    assert read.json()["department"] == "eng"
    assert [item["id"] for item in listed.json()["items"]] == [created.json()["id"]]
    assert deleted.status_code == 204
    assert tenant.get(location).status_code == 404


def test_an_id_with_escapes_reaches_the_function_as_one_value(tenant: httpx.Client) -> None:
    put = tenant.put("/v1/users/a%20b%2Bc", json={"email": "x@example.com", "display_name": "X"})

    assert put.status_code == 201
    assert tenant.get("/v1/users/a%20b%2Bc").json()["id"] == "a b+c"


def test_requests_that_the_gateway_refuses_do_not_reach_the_function(tenant: httpx.Client) -> None:
    large = tenant.post("/v1/users", content=b"x" * (10 * 1024 * 1024 + 1))
    headers = tenant.get("/v1/users", headers={"X-Long": "x" * 11_000})
    elsewhere = tenant.get("/v2/users")

    assert (large.status_code, large.json()) == (413, {"message": "Request Entity Too Large"})
    assert (headers.status_code, headers.json()) == (431, {"message": "Request Header Fields Too Large"})
    assert (elsewhere.status_code, elsewhere.json()) == (404, {"message": "Not Found"})


def test_the_commands_of_the_banner_work_as_they_are_printed(local_stack: LocalProcess) -> None:
    printed = local_stack.once(lambda: "\n\n" in local_stack.text.partition("Try:\n")[2]).text
    commands = printed.partition("Try:\n")[2].partition("\n\n")[0]

    done = subprocess.run(  # noqa: S603 - what the stack printed
        ["/bin/sh", "-euc", commands], capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )

    assert done.returncode == 0, done.stderr
    assert '"email":"ada@example.com"' in done.stdout
    assert '"items":[' in done.stdout
