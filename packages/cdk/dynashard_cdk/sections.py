"""The sections of an environment's settings, each with its defaults, bounds and units."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from dynashard_serving.tenants import DEFAULT_PATTERN, TenantRule

_ADDRESS: Final = r"[^\s@:/]+@[^\s@:/.]+(\.[^\s@:/.]+)+|https://[^\s/@]+(/\S*)?"
"""An e-mail address or an https URL."""
_TABLE: Final = r"^[A-Za-z0-9_.-]{3,255}$"
TABLE_QUOTA_UNITS: Final = 40_000
"""Write units a second of a table that an account has unless it asks for more."""
_STREAM: Final = r"arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:[0-9]{{12}}:table/{}/stream/.+"


class Section(BaseModel):
    """Settings that refuse unknown names, and do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


TENANT_ATTRIBUTE: Final = "tenant_id"
"""The custom attribute of a user of the pool, which its ID tokens carry as `custom:tenant_id`."""


GROUPS_CLAIM: Final = "cognito:groups"
"""The claim of a user's groups in ID tokens. A group that is named like a scope gives its members that scope."""


class UserPoolSettings(Section):
    """A user pool of the backend's own; it has no settings yet."""


class UserPoolAuth(Section):
    """A user pool that is deployed with the backend, and whose ID tokens the gateway trusts."""

    user_pool: UserPoolSettings
    tenant_pattern: str = DEFAULT_PATTERN
    """As in `AuthSettings`."""

    @property
    def tenant_claim(self) -> str:
        """The verified claim that carries the caller's tenant."""
        return f"custom:{TENANT_ATTRIBUTE}"

    @property
    def scope_claim(self) -> str:
        """The verified claim that lists the caller's scopes: ID tokens have the user's groups in it."""
        return GROUPS_CLAIM

    @field_validator("tenant_pattern")
    @classmethod
    def _reads_alike_everywhere(cls, pattern: str) -> str:
        return TenantRule(pattern).pattern


class AuthSettings(Section):
    """The token issuer that the gateway trusts."""

    issuer: str = Field(pattern=r"^https?://[^\s]+$")
    """Base address of the OpenID Connect issuer; `https`, except in an environment for local use."""
    audience: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    """Accepted values of the token's `aud` or `client_id`."""
    tenant_claim: str = Field(min_length=1)
    """The verified claim that carries the caller's tenant."""
    scope_claim: str = Field(default="scope", min_length=1)
    """The verified claim that lists the caller's scopes, such as `scope`, `scp` or `permissions`."""
    tenant_pattern: str = DEFAULT_PATTERN
    """Pattern of tenants: character classes and their lengths between `^` and `$`. Requests of others are refused."""

    @field_validator("tenant_pattern")
    @classmethod
    def _reads_alike_everywhere(cls, pattern: str) -> str:
        return TenantRule(pattern).pattern


def _way(auth: object) -> str:
    """Return which of both ways of signing in is written."""
    pool = isinstance(auth, UserPoolAuth) or (isinstance(auth, Mapping) and "user_pool" in auth)
    return POOL if pool else ISSUER


POOL: Final = "user_pool"
ISSUER: Final = "issuer"
SignIn = Annotated[Annotated[UserPoolAuth, Tag(POOL)] | Annotated[AuthSettings, Tag(ISSUER)], Discriminator(_way)]
"""A user pool of the backend's own, or an issuer."""


class CorsSettings(Section):
    """Which web pages may call the API from a browser; none by default."""

    origins: tuple[Annotated[str, Field(pattern=r"^https?://[^\s/*]+$")], ...] = ()
    """Exact origins, such as `https://app.example.com`. `*` is refused, because every call carries a token."""
    max_age_seconds: int = Field(default=600, ge=0, le=86400)
    """How long a browser may cache the answer to a preflight request."""


class ApiSettings(Section):
    """Size and limits of the API function and its gateway."""

    memory_mb: int = Field(default=1769, ge=128, le=10240)
    """A whole CPU is 1,769 MB."""
    timeout_seconds: int = Field(default=29, ge=1, le=29)
    """Longest request; the gateway gives up at 30."""
    reserved_concurrency: int = Field(default=50, ge=2)
    """Most requests at once."""
    requests_per_second: int = Field(default=100, ge=1)
    """Steady rate above which the gateway answers 429."""
    burst: int = Field(default=50, ge=1)
    """Requests that the gateway admits at once before the rate counts."""
    listings_per_second: int = Field(default=50, ge=1)
    """Rate of listings and sums, which cost many times what a single item costs, so that they are refused first."""
    listings_burst: int = Field(default=25, ge=1)
    """Listings admitted at once; fewer than `reserved_concurrency`, so that they never use every environment."""
    cors: CorsSettings = CorsSettings()
    max_queries_per_request: int = Field(default=300, ge=1, le=10_000)
    """Most Queries of one request, by any interface: a listing of more shards is refused."""
    public_docs: bool = False
    """Serve the OpenAPI document and its Swagger page without a token. Production never serves them."""
    snap_start: bool = False
    """Start environments from a snapshot of the imported function (Lambda SnapStart); Lambda charges for it."""

    @model_validator(mode="after")
    def _listings_leave_room(self) -> Self:
        if self.listings_burst >= self.reserved_concurrency:
            raise ValueError(
                f"listings_burst {self.listings_burst} is not below reserved_concurrency {self.reserved_concurrency}: "
                "one burst of listings could take every environment of the function"
            )
        if self.listings_per_second > self.requests_per_second:
            raise ValueError(
                f"listings_per_second {self.listings_per_second} is above requests_per_second "
                f"{self.requests_per_second}: listings are to be refused first"
            )
        return self


class ReshardSettings(Section):
    """How resizes are carried out."""

    memory_mb: int = Field(default=1769, ge=256, le=10240)
    concurrency: int = Field(default=8, ge=1, le=40)
    """Tasks of one resize that run at once; Step Functions runs at most 40."""
    reserved_concurrency: int = Field(default=24, ge=1)
    """Tasks of all resizes that run at once."""
    slice_seconds: int = Field(default=240, ge=10, le=780)
    """How long a function works on a task before it hands over to the next one; a function ends at 900."""
    stuck_hours: int = Field(default=24, ge=1)
    """Age of a resize at which an alarm rings."""

    @model_validator(mode="after")
    def _one_change_fits(self) -> Self:
        if self.reserved_concurrency < self.concurrency:
            raise ValueError(
                f"reserved_concurrency {self.reserved_concurrency} is below concurrency {self.concurrency}: "
                "the tasks of one resize would be refused"
            )
        return self


class CommandsSettings(Section):
    """Size and limits of the function for direct invocation, and what its requests must say."""

    memory_mb: int = Field(default=1769, ge=128, le=10240)
    reserved_concurrency: int = Field(default=20, ge=1)
    caller_required: bool = False
    """Refuse requests without `caller`, so that a service which forgets it does not act with every right."""


BUS_ARN: Final = r"^arn:aws[a-z-]*:events:[a-z0-9-]+:\d{12}:event-bus/[A-Za-z0-9/_.-]{1,256}$"


class ChangesSettings(Section):
    """How stream consumers process the changes of items."""

    memory_mb: int = Field(default=1024, ge=256, le=10240)
    lanes: int = Field(default=4, ge=1, le=10)
    """The parallelization factor: batches of one shard handled at once. An item's changes stay in order."""
    reserved_concurrency: int = Field(default=20, ge=1)
    """Batches of all shards of the stream that are handled at once. A refused batch is delivered again."""
    event_bus: str | None = Field(default=None, pattern=BUS_ARN)
    """ARN of an event bus that exists, for the events that the domain declares; None for one of the stack's own."""
    event_source: str = Field(default="dynashard", pattern=r"^[A-Za-z0-9_.-]{1,256}$")
    """The `source` of these events."""

    @field_validator("event_source")
    @classmethod
    def _is_ours(cls, source: str) -> str:
        if source.startswith("aws."):
            raise ValueError(f"{source} is a name of AWS's own events: EventBridge refuses it")
        return source

    @model_validator(mode="after")
    def _one_part_fits(self) -> Self:
        if self.reserved_concurrency < self.lanes:
            raise ValueError(
                f"reserved_concurrency {self.reserved_concurrency} is below changes.lanes {self.lanes}: "
                "Lambda would refuse parallel batches of one shard of the stream"
            )
        return self


class WriterSettings(Section):
    """How accepted writes are executed."""

    memory_mb: int = Field(default=1769, ge=256, le=10240)
    concurrency: int = Field(default=10, ge=2, le=1000)
    """Batches of added items at once; the load on the table grows with it."""
    operations_concurrency: int = Field(default=5, ge=2, le=1000)
    """Batches of operations whose callers wait at once."""


class GrowthSettings(Section):
    """How shard counts change by themselves."""

    mode: Literal["on", "dry_run", "off"] = "on"
    """`dry_run` only reports what it would request."""
    cooldown_seconds: int = Field(default=300, ge=1)
    """How long a count stays after it has changed."""
    quiet_seconds: int = Field(default=86400, ge=1)
    """How long a count must have stayed without throttling before it is halved."""
    most_minutes: float = Field(default=10, gt=0)
    """How long a resize may be expected to take that starts by itself and moves items."""
    mover_share: float = Field(default=0.2, gt=0, le=1)
    """The part of each shard's units that moving items may take."""

    @model_validator(mode="after")
    def _quiet_outlasts_cooldown(self) -> Self:
        if self.quiet_seconds < self.cooldown_seconds:
            raise ValueError(
                f"quiet_seconds {self.quiet_seconds} is below cooldown_seconds {self.cooldown_seconds}: "
                "a count would shrink before it may grow again"
            )
        return self

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of functions."""
        return {
            "GROWTH_MODE": self.mode,
            "GROWTH_COOLDOWN_SECONDS": str(self.cooldown_seconds),
            "GROWTH_QUIET_SECONDS": str(self.quiet_seconds),
            "GROWTH_MOST_MINUTES": f"{self.most_minutes:g}",
            "GROWTH_MOVER_SHARE": f"{self.mover_share:g}",
        }


class LogsSettings(Section):
    """What functions write about requests and items."""

    item_keys: bool = True
    """Name the item and the caller in each line. Without it, nobody can see from the logs who deleted an item."""


class MonitoringSettings(Section):
    """Who hears of alarms, and when those ring whose threshold depends on the application."""

    addresses: tuple[str, ...] = ()
    """E-mail addresses and https URLs that are notified; each is asked by SNS to confirm. None by default."""
    latency_milliseconds: int = Field(default=3000, ge=1, le=30_000)
    """Latency of the slowest hundredth of the requests at which an alarm rings."""
    quiet_minutes: int | None = Field(default=None, ge=10, le=1440, multiple_of=5)
    """Minutes without a request at which an alarm rings, in steps of five; None if quiet is ordinary."""
    growths_per_hour: int = Field(default=20, ge=1)
    """Requests for more shards in an hour at which an alarm rings."""
    runbooks: str = Field(default="docs/runbooks", pattern=r"^(docs/runbooks|https://[^\s]+[^\s/])$")
    """Where alarms say that their pages are: within the checkout, or a URL of the folder."""

    @field_validator("addresses")
    @classmethod
    def _can_be_subscribed(cls, addresses: tuple[str, ...]) -> tuple[str, ...]:
        for address in addresses:
            if not re.fullmatch(_ADDRESS, address):
                raise ValueError(
                    f"{address!r} is neither an e-mail address such as ops@example.com nor a URL such as "
                    "https://events.example.com/alarms"
                )
        if len(set(addresses)) < len(addresses):
            raise ValueError("an address is there twice: name it once")
        return addresses


class RestoredTables(Section):
    """Tables that were restored to one moment, and that the functions use instead of those of the data stack."""

    table: str = Field(pattern=_TABLE)
    table_stream: str
    """ARN of the stream of `table`, with old and new images."""
    topology: str = Field(pattern=_TABLE)
    topology_stream: str
    """ARN of the stream of `topology`, with old and new images."""

    @model_validator(mode="after")
    def _streams_are_theirs(self) -> Self:
        if self.table == self.topology:
            raise ValueError("table and topology are the same table")
        for name in ("table", "topology"):
            table, stream = getattr(self, name), getattr(self, f"{name}_stream")
            if not re.fullmatch(_STREAM.format(re.escape(table)), stream):
                raise ValueError(
                    f"{name}_stream {stream!r} is not the stream of {table}: write the LatestStreamArn that "
                    f"`aws dynamodb describe-table --table-name {table}` prints"
                )
        return self


class _Prewarm(Section):
    write_units: int = Field(ge=1)
    read_units: int = Field(default=12000, ge=1)
    idempotency_write_units: int | None = Field(default=None, ge=0)
    """Write units of the idempotency table; None for as many as the table, at most the default quota; 0 leaves it."""
    ceiling_write_units: int = Field(ge=1)
    """Write units above which the pre-warm is refused, because of the cost."""
    dollars_per_write_unit_hour: float = Field(default=0.00065, gt=0)
    dollars_per_read_unit_hour: float = Field(default=0.00013, gt=0)

    @model_validator(mode="after")
    def _below_ceiling(self) -> Self:
        for name in ("write_units", "index_write_units", "idempotency_write_units"):
            units = getattr(self, name, None)
            if units is not None and units > self.ceiling_write_units:
                raise ValueError(
                    f"{name} {units} is above ceiling_write_units {self.ceiling_write_units}; "
                    "raise the ceiling only if you accept the cost"
                )
        return self

    @property
    def idempotency_units(self) -> int:
        """Write units to which the idempotency table is warmed."""
        if self.idempotency_write_units is None:
            return min(self.write_units, TABLE_QUOTA_UNITS)
        return self.idempotency_write_units


class NativePrewarm(_Prewarm):
    """Raise the table's warm throughput once, for a one-time charge; the billing mode stays."""

    way: Literal["native"]


class ProvisionedPrewarm(_Prewarm):
    """Provision the table for a while, so that partitions are allocated, and switch back to on-demand.

    100,000 write units allocate about 100 partitions.
    """

    way: Literal["provisioned"]
    index_write_units: int | None = Field(default=None, ge=1)
    """Write units of each index; None for as many as the table."""
    allocate_minutes: int = Field(default=25, ge=1, le=25)
    """Longest wait for the partitions; then it switches back anyway."""


Prewarm = Annotated[NativePrewarm | ProvisionedPrewarm, Field(discriminator="way")]
