"""Where requests go: regional, dual-stack, FIPS, VPC or local endpoints, by botocore's settings and variables.

What this module does not decide itself raises `UnusualSettingsError`, and botocore's transport is used instead. So a
proxy, an unknown partition or a URL with a path works as before.
"""

import os
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from dynashard.transport.certificates import ca_bundle
from dynashard.transport.direct.unusual import UnusualSettingsError, Variable
from dynashard.transport.interface import Settings

_PARTITIONS: Final = (
    # Names of regions, and the domains of plain and of dual-stack endpoints.
    (r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+", "amazonaws.com", "api.aws"),
    (r"cn-\w+-\d+", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    (r"us-gov-\w+-\d+", "amazonaws.com", "api.aws"),
)
_LONGEST_LABEL: Final = 63
_GOVERNMENT: Final = "us-gov-"
_NAMES: Final = {
    "region": ("AWS_DEFAULT_REGION", "AWS_REGION"),
    "endpoint_url": ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"),
    "use_fips_endpoint": ("AWS_USE_FIPS_ENDPOINT",),
    "use_dualstack_endpoint": ("AWS_USE_DUALSTACK_ENDPOINT",),
    "ignore_configured_endpoint_urls": ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",),
    "ca_bundle": ("AWS_CA_BUNDLE",),
}
_FILES: Final = (
    ("AWS_CONFIG_FILE", "~/.aws/config"),
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
)
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")


class Endpoint(Struct, frozen=True):
    """Where requests go, and the region of their signatures.

    Attributes:
        secure: whether connections use TLS.
        host: a name, or an address without brackets.
        port: of TCP.
        region: that signatures name.
        ca_bundle: the file of the trusted root certificates; None without TLS.
    """

    secure: bool
    host: str
    port: int
    region: str
    ca_bundle: str | None = None

    @property
    def authority(self) -> str:
        """The value of the header `Host`, which is part of the signature."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(secure=self.secure) else f"{host}:{self.port}"


def endpoint_of(settings: Settings, environ: Mapping[str, str]) -> Endpoint:
    """Return the endpoint that botocore would use.

    Explicit settings come first, then variables, then the SDK's configuration files, which botocore reads if there are
    any. Raises `UnusualSettingsError`, and `ConfigurationError` if they name root certificates that do not exist.
    """
    variable = _variables(settings, environ)
    region = settings.region or variable("region")
    if not region:
        raise UnusualSettingsError("no region is set")
    if not re.fullmatch(r"[\w-]+", region, re.ASCII):
        raise UnusualSettingsError("the region is not a plain name")
    fips, dual_stack = (_truth(variable(name)) for name in ("use_fips_endpoint", "use_dualstack_endpoint"))
    url = settings.endpoint_url
    if url is None and not _truth(variable("ignore_configured_endpoint_urls")):
        url = variable("endpoint_url")
    if url is None:
        url = f"https://{_regional_host(region, fips=fips, dual_stack=dual_stack)}"
    elif fips or dual_stack:
        raise UnusualSettingsError("an explicit endpoint is combined with FIPS or dual-stack")
    secure, host, port = _parts(url)
    _refuse_proxy(url, environ)
    if not secure:
        return Endpoint(secure, host, port, region)
    return Endpoint(secure, host, port, region, ca_bundle(variable("ca_bundle"), environ) or root_certificates())


def _variables(settings: Settings, environ: Mapping[str, str]) -> Variable:
    """Return how settings are looked up: in the environment, or by botocore if there are configuration files."""
    local = settings.region and settings.endpoint_url and settings.endpoint_url.startswith("http://")
    files = [os.path.expanduser(environ.get(name) or default) for name, default in _FILES]  # noqa: PTH111 - see below
    profiled = settings.profile or settings.session or environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE")
    if not local and (profiled or any(map(os.path.isfile, files))):
        # `Path.expanduser` would fail for a user without a home folder.
        from dynashard.transport.direct.sdk_settings import sdk_variables  # noqa: PLC0415 - it imports botocore

        return sdk_variables(settings, environ)
    return lambda name: next((environ[each] for each in _NAMES[name] if environ.get(each)), None)


def _truth(value: str | None) -> bool:
    return value is not None and value.lower() == "true"


def _regional_host(region: str, *, fips: bool, dual_stack: bool) -> str:
    for names, domain, dual_stack_domain in _PARTITIONS:
        if re.fullmatch(names, region, re.ASCII):
            # The plain endpoints of the government's regions are FIPS endpoints.
            own = fips and (dual_stack or not region.startswith(_GOVERNMENT))
            return f"dynamodb{'-fips' if own else ''}.{region}.{dual_stack_domain if dual_stack else domain}"
    raise UnusualSettingsError(f"the region {region} belongs to no partition that is known here")


def _parts(url: str) -> tuple[bool, str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UnusualSettingsError("the endpoint is not a URL") from error
    secure = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.netloc.isascii():
        raise UnusualSettingsError("the endpoint is not a URL of HTTP")
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UnusualSettingsError("the endpoint's URL has more than a host and a port")
    labels = parts.hostname.split(".")
    if re.search(r"[^\w.:-]", parts.hostname, re.ASCII) or not all(
        0 < len(label) <= _LONGEST_LABEL for label in labels
    ):
        raise UnusualSettingsError("the endpoint's host is not a plain name")
    return secure, parts.hostname, port or _default_port(secure=secure)


def _default_port(*, secure: bool) -> int:
    return 443 if secure else 80


def _refuse_proxy(url: str, environ: Mapping[str, str]) -> None:
    """Raise `UnusualSettingsError` behind a proxy. Only Linux keeps proxies in variables alone."""
    if sys.platform == "linux" and not any(environ.get(name) or environ.get(name.upper()) for name in _PROXIES):
        return
    from dynashard.transport.direct.sdk_settings import proxied  # noqa: PLC0415 - it imports botocore

    if proxied(url):
        raise UnusualSettingsError("a proxy is set")


def root_certificates() -> str | None:
    """Return the file of root certificates that botocore uses, without importing it; None for the system's."""
    for package in ("certifi", "botocore"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            file = os.path.join(folder, "cacert.pem")  # noqa: PTH118 - a string is what OpenSSL takes
            if os.path.isfile(file):  # noqa: PTH113 - as above
                return file
    return None
