"""Signatures are those of AWS's published test suite, and those that botocore makes."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given
from hypothesis import strategies as st

from dynashard.transport.direct.credentials import Credentials
from dynashard.transport.direct.signing import RequestWriter, Signer

pytestmark = pytest.mark.unit

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden/sigv4.json").read_text())
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
HOSTS = st.from_regex(r"[a-z][a-z0-9.-]{0,30}(:[1-9][0-9]{1,3})?", fullmatch=True)


@pytest.mark.parametrize("name", GOLDEN["cases"])
def test_a_signature_is_that_of_the_published_test_suite(name: str) -> None:
    case = GOLDEN["cases"][name]
    signer = Signer(GOLDEN["region"], GOLDEN["service"])
    headers = "".join(f"{header}:{value}\n" for header, value in case["headers"].items())

    prepared = signer.prepare(
        Credentials(GOLDEN["access_key"], GOLDEN["secret_key"]),
        GOLDEN["stamp"],
        headers,
        ";".join(case["headers"]),
    )

    assert prepared.start + prepared.signature(case["body"].encode()) == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders={';'.join(case['headers'])}, Signature={case['signature']}"
    )


def headers_of(request: bytes) -> dict[str, str]:
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


def by_botocore(request: bytes, host: str, region: str, credentials: Credentials, now: float) -> str:
    """Return the authorization that botocore makes for the same headers and body."""
    sent = headers_of(request)
    signed = AWSRequest("POST", f"https://{host}/", data=request.partition(b"\r\n\r\n")[2])
    for name in ("Host", "X-Amz-Target", "Content-Type", "User-Agent"):
        signed.headers[name] = sent[name]
    keys = BotocoreCredentials(credentials.access_key, credentials.secret_key, credentials.token)
    at = datetime.fromtimestamp(now, UTC)
    with patch("botocore.auth.get_current_datetime", lambda: at.replace(tzinfo=None)):
        SigV4Auth(keys, "dynamodb", region).add_auth(signed)
    return str(signed.headers["Authorization"])


@given(
    operation=st.sampled_from(["GetItem", "PutItem", "Query", "TransactWriteItems"]),
    body=st.binary(max_size=300),
    access_key=PRINTABLE,
    secret_key=PRINTABLE,
    token=st.none() | PRINTABLE,
    host=HOSTS,
    region=st.sampled_from(["eu-west-1", "us-gov-west-1", "cn-north-1"]),
    now=st.integers(0, 4_000_000_000),
)
def test_a_random_request_is_signed_as_botocore_signs_it(
    *,
    operation: str,
    body: bytes,
    access_key: str,
    secret_key: str,
    token: str | None,
    host: str,
    region: str,
    now: int,
) -> None:
    credentials = Credentials(access_key, secret_key, token)

    request = RequestWriter(host, region).request(operation, body, credentials, float(now))

    assert headers_of(request)["Authorization"] == by_botocore(request, host, region, credentials, now)
    assert request.endswith(b"\r\n\r\n" + body)
    assert headers_of(request).get("X-Amz-Security-Token") == token


def test_a_request_has_exactly_these_bytes() -> None:
    request = RequestWriter("localhost:8000", "eu-west-1").request("GetItem", b"{}", Credentials("a", "b", "c"), 0.0)

    assert request.split(b"\r\n") == [
        b"POST / HTTP/1.1",
        b"Host: localhost:8000",
        b"X-Amz-Target: DynamoDB_20120810.GetItem",
        b"Content-Type: application/x-amz-json-1.0",
        b"User-Agent: Dynashard Direct",
        b"X-Amz-Date: 19700101T000000Z",
        b"X-Amz-Security-Token: c",
        request.split(b"\r\n")[7],
        b"Content-Length: 2",
        b"",
        b"{}",
    ]


def test_each_request_is_signed_for_its_own_operation_time_credentials_and_body() -> None:
    kept = RequestWriter("h", "eu-west-1")
    first, second, other = Credentials("a", "one"), Credentials("a", "two"), Credentials("b", "one", "token")
    moments = [(first, 0.0), (first, 0.9), (first, 1.0), (first, 86_400.0), (second, 86_400.0), (first, 0.0)]
    moments += [(other, 0.0), (first, 0.0)]

    for credentials, now in moments:
        for operation, body in (("GetItem", b"{}"), ("PutItem", b"{}"), ("PutItem", b'{"a": 1}')):
            again = RequestWriter("h", "eu-west-1").request(operation, body, credentials, now)
            assert kept.request(operation, body, credentials, now) == again


def test_no_secret_is_in_a_repr() -> None:
    writer = RequestWriter("h", "eu-west-1")
    writer.request("GetItem", b"{}", Credentials("access", "hidden", "session"), 0.0)

    shown = repr(list(writer._heads.values()))
    assert "access" in shown
    assert "hidden" not in shown
    assert "session" not in shown
