"""Roll-ups for callers: the request for the sums of a group, and its answer, from their declaration."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, create_model

from dynashard.entity import Entity, definition
from dynashard.service import Dynashard
from dynashard_serving.declare import Endpoint, ServedRollUps
from dynashard_serving.documents import TENANT


def _in_utc(time: datetime) -> datetime:
    """Return a time with a zone. A day, or a time without a zone, is in UTC, as times in keys are."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


_Time = Annotated[datetime, AfterValidator(_in_utc)]


def roll_ups_endpoint(served: ServedRollUps) -> Endpoint:
    """Return what answers with the rows of one level, span by span. Rows without a field of the group leave it null."""
    roll_ups = served.roll_ups
    models = list(roll_ups.into)
    group = [name for name in dict.fromkeys(n for model in models for n in roll_ups.by(model)) if name != TENANT]
    answer = _answer(served, models, group)
    shown = set(answer.model_fields)

    def read(db: Dynashard, tenant_id: str, wanted: Any) -> list[dict[str, Any]]:
        given = {TENANT: tenant_id, **{name: getattr(wanted, name) for name in group}}
        by = {name: value for name, value in given.items() if value is not None}
        rows = roll_ups.read(db, by, level=wanted.level, start=wanted.start, end=wanted.end, strict=False)
        return [row.model_dump(mode="json", include=shown) for row in rows]

    summary = served.summary or f"List {roll_ups.name} by spans of time"
    return Endpoint(
        served.path,
        read,
        request=_request(served, models, group),
        answer=answer,
        many=True,
        summary=summary,
        text=served.text or f"{summary}.",
        tag=served.tag,
        access=served.access,
        quota=served.quota,
    )


def _request(served: ServedRollUps, models: list[type[Entity]], group: list[str]) -> type[BaseModel]:
    levels: Any = Literal[tuple(level.value for level in served.roll_ups.levels)]
    texts = {"level": "The length of the spans.", **served.parameters}
    fields: dict[str, Any] = {"level": (levels, Field(description=texts["level"]))}
    for name in group:
        annotation: Any = _field(models, name).annotation
        fields[name] = (annotation | None, Field(None, description=texts.get(name, f"The {name} of the group.")))
    fields["start"] = (_Time, Field(alias="from", description="Spans that begin from this time on."))
    fields["end"] = (_Time, Field(alias="to", description="Spans that begin before this time."))
    model: type[BaseModel] = create_model(f"{served.name}Wanted", **fields)
    return model


def _answer(served: ServedRollUps, models: list[type[Entity]], group: list[str]) -> type[BaseModel]:
    levels: Any = Literal[tuple(level.value for level in served.roll_ups.levels)]
    fields: dict[str, Any] = {}
    for name in group:
        annotation: Any = _field(models, name).annotation
        of_all = all(name in model.model_fields for model in models)
        fields[name] = (annotation, ...) if of_all else (annotation | None, None)
    fields["level"], fields["start"] = (levels, ...), (datetime, ...)
    for name in dict.fromkeys(name for model in models for name in _sums(model)):
        fields[name] = (_field(models, name).annotation, ...)
    model: type[BaseModel] = create_model(
        served.name, __doc__=f"The {served.roll_ups.name} of a span of time.", **fields
    )
    return model


def _sums(model: type[Entity]) -> list[str]:
    known = definition(model)
    apart = {*known.key_fields, known.expires, *known.server_fields}
    return [name for name in model.model_fields if name not in apart]


def _field(models: list[type[Entity]], name: str) -> Any:
    return next(model.model_fields[name] for model in models if name in model.model_fields)
