"""What botocore says about settings: its configuration files and proxies. Importing this module imports botocore."""

from collections.abc import Mapping

from botocore.configprovider import ConfiguredEndpointProvider
from botocore.exceptions import BotoCoreError
from botocore.utils import get_environ_proxies

from dynashard.transport.client import open_session
from dynashard.transport.direct.unusual import UnusualSettingsError, Variable
from dynashard.transport.interface import Settings


def sdk_variables(settings: Settings, environ: Mapping[str, str]) -> Variable:
    """Return how botocore looks settings up: in variables, then in the profile's section of its files."""
    try:
        session = open_session(settings.profile, settings.session)
        url = ConfiguredEndpointProvider(
            full_config=session.full_config, scoped_config=session.get_scoped_config(), client_name="dynamodb"
        ).provide()
    except BotoCoreError as error:
        raise UnusualSettingsError(f"the configuration files are not usable ({error})") from error

    def variable(name: str) -> str | None:
        if name == "endpoint_url":
            return None if url is None else str(url)
        value = session.get_config_variable(name)
        if name == "region" and value is None:
            # Botocore does not read this one, which Lambda sets as well.
            value = environ.get("AWS_REGION")
        return None if value is None else str(value)

    return variable


def proxied(url: str) -> bool:
    """Whether botocore would send requests to this URL through a proxy."""
    return bool(get_environ_proxies(url))
