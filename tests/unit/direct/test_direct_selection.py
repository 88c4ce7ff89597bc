"""The one place that decides which transport a process uses."""

from typing import Any, get_args, get_type_hints

import pytest

from dynashard import Dynashard
from dynashard.errors import ConfigurationError
from dynashard.transport import connect
from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.interface import Transport
from dynashard.transport.sdk import SdkTransport
from dynashard.transport.selection import DEFAULT, TransportName, name_in
from dynashard_cdk.settings import Settings as StackSettings
from dynashard_local.settings import Settings as LocalSettings
from dynashard_local.workers.resharding import transport_of
from dynashard_serving.backend import open_transport
from dynashard_serving.settings import TableSettings

pytestmark = pytest.mark.unit

ENGINE = "http://127.0.0.1:1"
KINDS: list[tuple[TransportName, type[Transport]]] = [("botocore", SdkTransport), ("direct", DirectTransport)]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_process_uses_the_transport_that_its_setting_names(
    monkeypatch: pytest.MonkeyPatch, name: TransportName, kind: type[Any]
) -> None:
    variables = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    function = TableSettings(table="t", topology_table="u", endpoint=ENGINE, transport=name)
    local = {**variables, "DYNAMODB_ENDPOINT": ENGINE, "TOPOLOGY_OPERATION_SECONDS": "4", "TRANSPORT": name}
    program = Dynashard.local({"DYNAMODB_PORT": "1", "TRANSPORT": name}, growth="off").store.transport
    opened = [connect(ENGINE, "eu-west-1", transport=name), open_transport(function), transport_of(local), program]

    assert [type(each) for each in opened] == [kind] * 4
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, DEFAULT),
        ({"TRANSPORT": ""}, DEFAULT),
        ({"TRANSPORT": "direct"}, "direct"),
        ({"TRANSPORT": DEFAULT}, DEFAULT),
    ],
)
def test_an_unset_variable_means_the_default(environ: dict[str, str], name: str) -> None:
    assert name_in(environ) == name


@pytest.mark.parametrize("text", ["pigeon", "Direct", " direct"])
def test_an_unknown_transport_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        name_in({"TRANSPORT": text})

    assert str(refused.value) == f"TRANSPORT is {text!r}: use botocore or direct"


def test_all_settings_have_the_same_names_and_default() -> None:
    # The stacks import nothing that opens sockets, and the local stack checks its settings by their types.
    for settings in (StackSettings, LocalSettings):
        assert get_type_hints(settings)["transport"] == TransportName
        assert settings.model_fields["transport"].default == DEFAULT
    assert DEFAULT in get_args(TransportName)
