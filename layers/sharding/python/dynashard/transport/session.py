"""Sessions of botocore that share what its descriptions of services and endpoints cost to read."""

from functools import cache

from botocore.loaders import Loader, create_loader
from botocore.session import Session


def open_session(profile: str | None) -> Session:
    """Return a session of a profile; None is the SDK's own choice.

    Raises `BotoCoreError` if there is no such profile. Cost: no request. The descriptions of services and endpoints are
    read from disk once in a process, and not for each client.
    """
    session = Session(profile=profile)
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


@cache
def _loader(search_path: str | None) -> Loader:
    return create_loader(search_path)
