"""Roll-ups of pings over HTTP: what was watched of an episode or a series, span by span."""

from typing import Final

from domain.watched import PlaysList, PlaysWanted, plays
from dynashard_serving.backend import Backend
from functions.api.describing import Operation, Schema, answer, operation
from functions.api.extra_endpoint import ExtraEndpoint, Served, answered, asked, parameters_of
from functions.api.request import ApiRequest
from functions.api.resource import PREFIX
from functions.api.responses import Response


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
