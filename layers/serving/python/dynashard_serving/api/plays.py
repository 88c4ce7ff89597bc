"""Roll-ups of pings over HTTP: what was watched of an episode or a series, span by span."""

from typing import Final

from domain.watched import PlaysList, PlaysWanted, plays
from dynashard_serving.api.describing import Operation, Schema, answer, operation
from dynashard_serving.api.extra_endpoint import ExtraEndpoint, Served, answered, asked, parameters_of
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.responses import Response
from dynashard_serving.backend import Backend


def _plays(backend: Backend, incoming: ApiRequest) -> Response[str]:
    return answered({"items": plays(backend.entities, incoming.tenant, asked(PlaysWanted, incoming.query))})


def _schemas() -> dict[str, Schema]:
    schema = PlaysList.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), "PlaysList": schema}


def _documentation() -> Operation:
    answers = {"200": answer("The spans.", "PlaysList")}
    text = "Lists how much was watched of an episode or a series, span by span."
    described = operation("listPlays", "List roll-ups of pings", "pings", text, answers)
    return {**described, "parameters": parameters_of(PlaysWanted)}


ENDPOINTS: Final = (
    ExtraEndpoint(f"{PREFIX}/roll-ups", {"GET": Served(_plays, _documentation)}, _schemas, expensive=True),
)
