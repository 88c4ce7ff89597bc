"""The local stack's settings: one frozen object, read from the environment once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from dynashard_local.errors import LocalStackError
from dynashard_local.root import backend_root

SIMULATED: Final[Mapping[str, str]] = {
    "topology_lease_seconds": "3",
    "topology_clock_seconds": "2",
    "topology_ahead_seconds": "2",
    "growth_cooldown_seconds": "10",
    "growth_most_minutes": "60",
}
"""Defaults if `SIMULATE` is set: shorter than usual, so that counts grow while one watches. Resizes of any length that
the real limits suggest may start, because the simulated ones let callers store little."""


class Settings(BaseModel):
    """The settings of the local stack; each field is set by the variable of its name in capitals."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    port: int = Field(default=8000, ge=0, le=65535)
    """Where the API is served on 127.0.0.1; 0 takes any free port."""
    dynamodb_port: int = Field(default=8001, ge=0, le=65535)
    """Where the engine listens on 127.0.0.1; 0 takes any free port."""
    data_dir: Path = Field(default_factory=lambda: backend_root() / ".data")
    """Where the engine's data, the token key, the logs and the synthesised template are kept."""
    dynoxide_bin: Path | None = None
    """The engine's program; by default the one that `make setup` installed for this platform."""
    dynamodb_endpoint: str | None = Field(default=None, pattern=r"^https?://[^/\s]+/?$")
    """URL of a DynamoDB engine that already runs; no engine is started then."""
    topology_lease_seconds: int = Field(default=30, ge=1, le=3600)
    """How long a function may keep a view of the topology."""
    topology_operation_seconds: int = Field(default=4, ge=1, le=900)
    """Longest operation on the table, retries included; resizes wait for it between their phases."""
    topology_skew_seconds: int = Field(default=0, ge=0, le=60)
    """Most that two clocks may differ; all processes here share one."""
    topology_clock_seconds: int = Field(default=5, ge=1, le=60)
    """How far the clock may be off from the engine's, where counts depend on the time of keys."""
    topology_ahead_seconds: int = Field(default=5, ge=1, le=3600)
    """How far the time of such a key may be ahead of the clock."""
    growth_mode: Literal["on", "dry_run", "off"] = "on"
    """Whether shard counts change by themselves; `dry_run` only logs the requests."""
    growth_cooldown_seconds: int = Field(default=300, ge=1)
    """How long a count stays after it has changed."""
    growth_quiet_seconds: int = Field(default=86400, ge=1)
    """How long a count that grew by itself must have stayed before it is halved."""
    growth_most_minutes: float = Field(default=10, gt=0)
    """How long a resize may be expected to take that starts by itself and moves items."""
    growth_mover_share: float = Field(default=0.2, gt=0, le=1)
    """The part of each shard's units that moving items may take."""
    max_queries_per_request: int = Field(default=300, ge=1, le=10_000)
    """Most Queries that one request may send: a listing of more shards than that is refused."""
    caller_required: bool = False
    """Whether direct invocation refuses requests without `caller`."""
    queue_visibility_seconds: int = Field(default=30, ge=1, le=43200)
    """How long a received message of a queue is hidden."""
    transport: Literal["botocore", "direct"] = "direct"
    """What signs and sends requests to DynamoDB, in every process of the stack."""
    simulate: str | None = None
    """A scenario of `dynashard simulate` whose table's limits, scaled down, the functions meet; none by default."""
    local_workers: int = Field(default=4, ge=1, le=64)
    """How many execution environments a function may have; each handles one event at a time, as on Lambda."""
    local_queue: int = Field(default=256, ge=0, le=10_000)
    """How many calls may wait for an environment of a function; expensive ones are refused at a quarter of it."""
    local_reload: Literal["on", "off"] = "on"
    """Whether functions and workers are reloaded when their code changes."""

    @field_validator("data_dir", "dynoxide_bin")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser().resolve()

    @field_validator("growth_quiet_seconds")
    @classmethod
    def _outlasts_cooldown(cls, value: int, info: ValidationInfo) -> int:
        cooldown = info.data.get("growth_cooldown_seconds", 0)
        if value < cooldown:
            raise ValueError(f"it is below the cooldown of {cooldown} seconds")
        return value

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from environment variables. An empty variable counts as unset.

        Raises:
            LocalStackError: the value of a variable is not valid; names the variable.
        """
        given = {name: environ[name.upper()] for name in cls.model_fields if environ.get(name.upper())}
        if "simulate" in given:
            given = {**SIMULATED, **given}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0]).upper()
            raise LocalStackError(f"{name}={first['input']} cannot be used: {first['msg']}.") from None
