"""Endpoints are those of botocore's own rules, by the same settings; what is unusual is left to botocore."""

import logging
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from botocore.endpoint_provider import EndpointProvider
from botocore.loaders import create_loader
from botocore.session import Session

from dynashard.transport import connect
from dynashard.transport.direct import fallback
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.direct.endpoint import Endpoint, endpoint_of, root_certificates
from dynashard.transport.direct.operations import OPERATIONS
from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.direct.unusual import UnusualSettingsError
from dynashard.transport.interface import Settings
from dynashard.transport.sdk import SdkTransport

pytestmark = pytest.mark.unit

REGION = {"AWS_DEFAULT_REGION": "eu-west-1"}


@pytest.fixture
def nothing(tmp_path: Path) -> dict[str, str]:
    """An environment without configuration files."""
    missing = str(tmp_path / "missing")
    return {"AWS_CONFIG_FILE": missing, "AWS_SHARED_CREDENTIALS_FILE": missing}


@pytest.fixture(scope="module")
def rules() -> EndpointProvider:
    loader = create_loader()
    return EndpointProvider(
        loader.load_service_model("dynamodb", "endpoint-rule-set-1"), loader.load_data("partitions")
    )


def test_endpoints_of_all_regions_are_those_of_botocores_rules(rules: Any, nothing: dict[str, str]) -> None:
    session = Session()
    partitions = ("aws", "aws-cn", "aws-us-gov")
    regions = [region for each in partitions for region in session.get_available_regions("dynamodb", each)]
    flags: tuple[dict[str, str], ...] = ({}, {"AWS_USE_FIPS_ENDPOINT": "true"}, {"AWS_USE_DUALSTACK_ENDPOINT": "True"})
    variants = [*flags, {**flags[1], **flags[2]}]

    for region, variant in product([*regions, "eu-new-7"], variants):
        found = endpoint_of(Settings(region=region), {**nothing, **variant})
        expected = rules.resolve_endpoint(
            Region=region,
            UseFIPS="AWS_USE_FIPS_ENDPOINT" in variant,
            UseDualStack="AWS_USE_DUALSTACK_ENDPOINT" in variant,
            AccountIdEndpointMode="disabled",
        )
        assert expected.url == f"https://{found.authority}"
        assert (found.secure, found.port, found.region) == (True, 443, region)
    assert len(regions) > 30


@pytest.mark.parametrize(
    ("url", "secure", "host", "port", "authority"),
    [
        ("http://127.0.0.1:8000", False, "127.0.0.1", 8000, "127.0.0.1:8000"),
        ("http://localhost/", False, "localhost", 80, "localhost"),
        ("https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com", True, "vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com",
         443, "vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com"),
        ("https://example.com:443", True, "example.com", 443, "example.com"),
        ("http://[::1]:8000", False, "::1", 8000, "[::1]:8000"),
    ],
)  # fmt: skip
def test_an_explicit_endpoint_is_taken_apart(
    nothing: dict[str, str], *, url: str, secure: bool, host: str, port: int, authority: str
) -> None:
    found = endpoint_of(Settings(endpoint_url=url, region="eu-west-1"), nothing)

    assert (found.secure, found.host, found.port, found.authority) == (secure, host, port, authority)


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        ({"AWS_ENDPOINT_URL": "http://all:1"}, "all"),
        ({"AWS_ENDPOINT_URL": "http://all:1", "AWS_ENDPOINT_URL_DYNAMODB": "http://one:1"}, "one"),
        ({"AWS_ENDPOINT_URL": "http://all:1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
         "dynamodb.eu-west-1.amazonaws.com"),
    ],
)  # fmt: skip
def test_endpoints_of_the_environment_are_used_as_botocore_uses_them(
    nothing: dict[str, str], environ: dict[str, str], host: str
) -> None:
    assert endpoint_of(Settings(), {**nothing, **REGION, **environ}).host == host


@pytest.mark.parametrize(
    ("environ", "region"),
    [
        ({"AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "eu-west-2"}, "eu-west-1"),
        ({"AWS_REGION": "eu-west-2"}, "eu-west-2"),
    ],
)
def test_the_region_is_botocores_variable_or_else_that_of_lambda(
    nothing: dict[str, str], environ: dict[str, str], region: str
) -> None:
    assert endpoint_of(Settings(), {**nothing, **environ}).region == region


def test_configuration_files_are_read_by_botocore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    file.write_text("[default]\nregion = eu-west-3\nuse_fips_endpoint = true\n[profile far]\nregion = us-west-2\n")
    environ = {"AWS_CONFIG_FILE": str(file), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert endpoint_of(Settings(), environ).host == "dynamodb-fips.eu-west-3.amazonaws.com"
    assert endpoint_of(Settings(profile="far"), environ).host == "dynamodb.us-west-2.amazonaws.com"
    with pytest.raises(UnusualSettingsError, match="configuration files"):
        endpoint_of(Settings(profile="unknown"), environ)


UNUSUAL = [
    (Settings(), {}),
    (Settings(region="moon-base-1"), {}),
    (Settings(region="local"), {}),
    (Settings(endpoint_url="http://h:1", region="eu\r\nX-A: b"), {}),
    (Settings(region="us-east-1-fips"), {}),
    (Settings(endpoint_url="http://h:1/prefix", region="eu-west-1"), {}),
    (Settings(endpoint_url="http://user:word@h:1", region="eu-west-1"), {}),
    (Settings(endpoint_url="http://h:1?a=b", region="eu-west-1"), {}),
    (Settings(endpoint_url="h:1", region="eu-west-1"), {}),
    (Settings(endpoint_url="http://h:port", region="eu-west-1"), {}),
    (Settings(endpoint_url="http://h\r\nX-A: b", region="eu-west-1"), {}),
    (Settings(endpoint_url="http://h\u00e9", region="eu-west-1"), {}),
    (Settings(endpoint_url=f"http://{'h' * 64}.example", region="eu-west-1"), {}),
    (Settings(endpoint_url="http://h..example", region="eu-west-1"), {}),
    (Settings(endpoint_url="https://h", region="eu-west-1"), {"AWS_USE_FIPS_ENDPOINT": "true"}),
    (Settings(endpoint_url="https://h", region="eu-west-1"), {"AWS_USE_DUALSTACK_ENDPOINT": "true"}),
]


@pytest.mark.parametrize(("settings", "environ"), UNUSUAL)
def test_unusual_settings_are_left_to_botocore(
    nothing: dict[str, str], settings: Settings, environ: dict[str, str]
) -> None:
    assert isinstance(transport_for(settings, {**nothing, **environ}), SdkTransport)


def test_a_proxy_is_left_to_botocore_unless_the_host_is_excepted(
    nothing: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    environ = {**nothing, **REGION, "https_proxy": "http://127.0.0.1:9"}

    assert isinstance(transport_for(Settings(), environ), SdkTransport)
    monkeypatch.setenv("no_proxy", ".amazonaws.com")
    assert isinstance(transport_for(Settings(access_key="a", secret_key="b"), environ), DirectTransport)  # noqa: S106


def test_each_reason_for_botocore_is_logged_once(nothing: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    fallback._log.cache_clear()

    for _ in range(3):
        transport_for(Settings(), nothing)
        transport_for(Settings(endpoint_url="http://h:1/prefix", region="eu-west-1"), nothing)

    assert [record.message for record in caplog.records if record.name.startswith("dynashard.transport.direct")] == [
        "Requests to DynamoDB are sent by botocore: no region is set.",
        "Requests to DynamoDB are sent by botocore: the endpoint's URL has more than a host and a port.",
    ]


def test_root_certificates_are_those_that_botocore_uses(nothing: dict[str, str]) -> None:
    from botocore.httpsession import get_cert_path  # noqa: PLC0415 - only this test compares

    assert root_certificates() == get_cert_path(verify=True)
    own = {**nothing, "AWS_CA_BUNDLE": __file__}
    assert endpoint_of(Settings(region="eu-west-1"), own).ca_bundle == __file__
    assert endpoint_of(Settings(endpoint_url="http://h:1", region="eu-west-1"), nothing).ca_bundle is None


def test_operations_are_all_of_the_plain_endpoints() -> None:
    known = set(Session().get_service_model("dynamodb").operation_names)

    assert known - OPERATIONS == {"SearchVectors"}
    assert known >= OPERATIONS


def test_connect_returns_the_direct_transport() -> None:
    transport = connect("http://127.0.0.1:1", "eu-west-1", access_key="a", secret_key="b")  # noqa: S106

    assert isinstance(transport, DirectTransport)
    assert Endpoint(secure=False, host="a", port=80, region="r").authority == "a"
    transport.close()
