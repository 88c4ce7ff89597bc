"""A month's revenue over HTTP: which licensor gets which part."""

from typing import Final

from domain import Revenue
from domain.revenue import RevenueWanted, revenue
from dynashard_serving.api.describing import Operation, Schema, answer, operation
from dynashard_serving.api.extra_endpoint import ExtraEndpoint, Served, answered, asked, parameters_of
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.responses import Response
from dynashard_serving.backend import Backend


def _shares(backend: Backend, incoming: ApiRequest) -> Response[str]:
    wanted = asked(RevenueWanted, incoming.query)
    return answered(revenue(backend.entities, incoming.tenant, wanted.month, wanted.amount))


def _schemas() -> dict[str, Schema]:
    schema = Revenue.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), "Revenue": schema}


def _documentation() -> Operation:
    answers = {"200": answer("The shares.", "Revenue")}
    text = "Divides an amount between licensors, by the seconds that were watched of their series in a month."
    described = operation("getRevenue", "Divide a month's revenue between licensors", "revenue", text, answers)
    return {**described, "parameters": parameters_of(RevenueWanted)}


ENDPOINTS: Final = (
    ExtraEndpoint(f"{PREFIX}/revenue", {"GET": Served(_shares, _documentation)}, _schemas, expensive=True),
)
