"""Typed settings of one environment, read from the `environments` context of `cdk.json`.

Everything a deployment may vary stands here with its default, its bounds and its unit. A key nobody reads, a
value out of bounds and a missing sign-in are refused before anything is synthesised, each by its full name.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dynashard_serving.tenants import DEFAULT_PATTERN, TenantRule

LEAST_OPERATION_SECONDS = 10
"""What changes of shard counts wait for at least: commands and Python clients bound each request by it."""
NOWHERE = "000000000000"
"""The account of templates that must never reach a real one: the CLI refuses to deploy them anywhere else."""

UNRESERVED_CONCURRENCY = 100
"""What Lambda keeps of an account's concurrency for functions that reserve none; it refuses to reserve more."""
SMALL_FUNCTIONS = {
    "reshard.advance": 5,
    "reshard.stop": 2,
    "reshard.dispatch": 2,
    "reshard.operate": 2,
    "reshard.watch": 2,
}
"""Concurrency of functions that do little and seldom. Callers of all of them try again when they are refused."""
PREWARM_FUNCTIONS = {"prewarm.step": 2, "prewarm.begin": 2}

Days = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653]
Purpose = Literal["local", "development", "production"]

AUTH_EXAMPLE = '{"issuer": "https://login.example.com/", "audience": ["my-api"], "tenant_claim": "tenant_id"}'


class SettingsError(ValueError):
    """A setting is missing, unknown or wrong; the message is one line and names it."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class AuthSettings(_Part):
    """Who may call: the token issuer the gateway trusts. Only the pattern has a default.

    Attributes:
        issuer: Base address of the OpenID Connect issuer; `https`, except in an environment for local use.
        audience: Accepted values of the token's `aud` (or `client_id`).
        tenant_claim: Name of the verified claim that carries the caller's tenant.
        tenant_pattern: Which texts are tenants: character classes and their lengths between `^` and `$`. Tokens,
            direct invocation and queued writes with another tenant are refused.
    """

    issuer: str = Field(pattern=r"^https?://[^\s]+$")
    audience: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    tenant_claim: str = Field(min_length=1)
    tenant_pattern: str = DEFAULT_PATTERN

    @field_validator("tenant_pattern")
    @classmethod
    def _reads_alike_everywhere(cls, pattern: str) -> str:
        return TenantRule(pattern).pattern


class TableSettings(_Part):
    """Limits of the table.

    Attributes:
        max_read_units: Most read request units a second that on-demand may bill, for the table and for each
            index; None leaves the account's quota as the only limit.
        max_write_units: The same for write request units.
    """

    max_read_units: int | None = Field(default=None, ge=1)
    max_write_units: int | None = Field(default=None, ge=1)


class CorsSettings(_Part):
    """Which web pages may call the API from a browser; none by default.

    Attributes:
        origins: Exact origins, such as `https://app.example.com`. `*` is refused: every call carries a token.
        max_age_seconds: How long a browser may remember the answer to a preflight.
    """

    origins: tuple[Annotated[str, Field(pattern=r"^https?://[^\s/*]+$")], ...] = ()
    max_age_seconds: int = Field(default=600, ge=0, le=86400)


class ApiSettings(_Part):
    """Size and limits of the API function and its gateway.

    Attributes:
        memory_mb: Memory of the function; a whole CPU is 1,769 MB.
        timeout_seconds: Longest run of one request; the gateway gives up at 30.
        reserved_concurrency: Most requests at once.
        requests_per_second: Steady rate above which the gateway answers 429.
        burst: Requests the gateway lets through at once before the rate counts.
        listings_per_second: The same for listings and sums, which cost many times what a single item costs. They have
            a bucket of their own, so that they are refused first.
        listings_burst: Listings the gateway lets through at once; fewer than `reserved_concurrency`, so that listings
            alone never take every environment.
        cors: Browser origins.
        max_queries_per_request: Most Queries that one request may send, over REST and by direct invocation: a listing
            of more shards than that is refused.
        public_docs: Serve the OpenAPI document and its Swagger page without a token, so that a browser can open
            them. Production never serves them.
    """

    memory_mb: int = Field(default=1769, ge=128, le=10240)
    timeout_seconds: int = Field(default=29, ge=1, le=29)
    reserved_concurrency: int = Field(default=50, ge=2)
    requests_per_second: int = Field(default=100, ge=1)
    burst: int = Field(default=50, ge=1)
    listings_per_second: int = Field(default=50, ge=1)
    listings_burst: int = Field(default=25, ge=1)
    cors: CorsSettings = CorsSettings()
    max_queries_per_request: int = Field(default=300, ge=1, le=10_000)
    public_docs: bool = False

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


class ReshardSettings(_Part):
    """How changes of shard counts are carried through.

    Attributes:
        memory_mb: Memory of the function that moves items.
        concurrency: Tasks of one change that are worked on at once; Step Functions runs at most 40.
        reserved_concurrency: Tasks of all changes that are worked on at once.
        slice_seconds: How long a function works on a task before it hands over to the next; a function ends at 900.
        stuck_hours: After how many hours a change that is not over rings the alarm.
    """

    memory_mb: int = Field(default=1769, ge=256, le=10240)
    concurrency: int = Field(default=8, ge=1, le=40)
    reserved_concurrency: int = Field(default=24, ge=1)
    slice_seconds: int = Field(default=240, ge=10, le=780)
    stuck_hours: int = Field(default=24, ge=1)

    @model_validator(mode="after")
    def _one_change_fits(self) -> Self:
        if self.reserved_concurrency < self.concurrency:
            raise ValueError(
                f"reserved_concurrency {self.reserved_concurrency} is below concurrency {self.concurrency}: "
                "the tasks of one change would be refused"
            )
        return self


class CommandsSettings(_Part):
    """Size and limits of the function for direct invocation.

    Attributes:
        memory_mb: Memory of the function.
        reserved_concurrency: Most requests at once.
    """

    memory_mb: int = Field(default=1769, ge=128, le=10240)
    reserved_concurrency: int = Field(default=20, ge=1)


class ChangesSettings(_Part):
    """How stream consumers process the changes of items.

    Attributes:
        memory_mb: Memory of the function.
        lanes: The parallelization factor: batches of one shard of the stream that are handled at once. Changes of one
            stored item stay in order.
        reserved_concurrency: Batches of all shards of the stream that are handled at once. A refused batch is delivered
            again.
    """

    memory_mb: int = Field(default=1024, ge=256, le=10240)
    lanes: int = Field(default=4, ge=1, le=10)
    reserved_concurrency: int = Field(default=20, ge=1)

    @model_validator(mode="after")
    def _one_part_fits(self) -> Self:
        if self.reserved_concurrency < self.lanes:
            raise ValueError(
                f"reserved_concurrency {self.reserved_concurrency} is below changes.lanes {self.lanes}: "
                "Lambda would refuse parallel batches of one shard of the stream"
            )
        return self


class WriterSettings(_Part):
    """How what was accepted to be done later is done.

    Attributes:
        memory_mb: Memory of the function.
        concurrency: Batches of added items at once: with them grows what the table has to take at once.
        operations_concurrency: Batches of operations that somebody waits for at once.
    """

    memory_mb: int = Field(default=1769, ge=256, le=10240)
    concurrency: int = Field(default=10, ge=2, le=1000)
    operations_concurrency: int = Field(default=5, ge=2, le=1000)


class GrowthSettings(_Part):
    """How shard counts change by themselves.

    Attributes:
        mode: `on`; `dry_run`, which only reports what it would request; `off`.
        cooldown_seconds: How long a count is left alone after it changed.
        quiet_seconds: How long it must have stood, with nothing throttled, before it is halved.
    """

    mode: Literal["on", "dry_run", "off"] = "on"
    cooldown_seconds: int = Field(default=300, ge=1)
    quiet_seconds: int = Field(default=86400, ge=1)

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
        """The environment variables of these settings."""
        return {
            "GROWTH_MODE": self.mode,
            "GROWTH_COOLDOWN_SECONDS": str(self.cooldown_seconds),
            "GROWTH_QUIET_SECONDS": str(self.quiet_seconds),
        }


class _Prewarm(_Part):
    ceiling_write_units: int = Field(ge=1)
    dollars_per_write_unit_hour: float = Field(default=0.00065, gt=0)
    dollars_per_read_unit_hour: float = Field(default=0.00013, gt=0)
    write_units: int = Field(ge=1)

    @model_validator(mode="after")
    def _below_ceiling(self) -> Self:
        for name in ("write_units", "index_write_units"):
            units = getattr(self, name, None)
            if units is not None and units > self.ceiling_write_units:
                raise ValueError(
                    f"{name} {units} is above ceiling_write_units {self.ceiling_write_units}; "
                    "raise the ceiling only if you accept the cost"
                )
        return self


class NativePrewarm(_Prewarm):
    """Raise the table's warm throughput once; a one-time charge for what is added, and no switch of mode.

    Attributes:
        way: `native`.
        write_units: Writes a second the table and its indexes shall take at once.
        read_units: Reads a second they shall take at once.
        ceiling_write_units: Write units above which it refuses.
        dollars_per_write_unit_hour: Price used for the expected cost.
        dollars_per_read_unit_hour: Price used for the expected cost.
    """

    way: Literal["native"]
    read_units: int = Field(default=12000, ge=1)


class ProvisionedPrewarm(_Prewarm):
    """Switch the table to provisioned for a while, so that partitions are allocated, and back to on-demand.

    Attributes:
        way: `provisioned`.
        write_units: Write units of the table while provisioned; 100,000 allocates about 100 partitions.
        index_write_units: The same for each index; None means as many as the table.
        read_units: Read units of the table and of each index while provisioned.
        allocate_minutes: Longest wait for the partitions; then it switches back anyway.
        ceiling_write_units: Write units above which it refuses.
        dollars_per_write_unit_hour: Price used for the expected cost.
        dollars_per_read_unit_hour: Price used for the expected cost.
    """

    way: Literal["provisioned"]
    index_write_units: int | None = Field(default=None, ge=1)
    read_units: int = Field(default=12000, ge=1)
    allocate_minutes: int = Field(default=25, ge=1, le=25)


Prewarm = Annotated[NativePrewarm | ProvisionedPrewarm, Field(discriminator="way")]


class Settings(_Part):
    """One environment.

    Attributes:
        name: Its key in `cdk.json`; part of every stack's name.
        purpose: `production` protects and keeps data; `local` never leaves this machine.
        auth: Sign-in. No default.
        region: Where the stacks go; None means the caller's own configuration.
        account: The account they go to; None means the caller's own. A wrong one is refused by the CLI.
        table: Limits of the table.
        api: Size and limits of the API.
        prewarm: How to warm the table before the first traffic; None leaves it as it is.
        reshard: How changes of shard counts are carried through.
        commands: Size and limits of direct invocation.
        changes: How the changes of items are followed.
        writer: How what was accepted to be done later is done.
        growth: How shard counts change by themselves.
        topology_lease_seconds: How long a reader may trust its view of the shard counts.
        topology_operation_seconds: Longest operation on the table, retries included; None means the API function's
            timeout, which ends them all. A change of a shard count waits for it between its phases.
        topology_skew_seconds: Most that two clocks may differ.
        account_concurrency: The account's quota of concurrent executions in the region, which all functions share.
        reserve_concurrency: Reserve each function's concurrency. False shares the account's, which a new account with
            a quota below 1,000 needs until AWS has raised it.
        log_level: Of the functions.
        log_retention_days: Of every log group.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,19}$")
    purpose: Purpose
    auth: AuthSettings
    region: str | None = Field(default=None, pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")
    account: str | None = Field(default=None, pattern=r"^\d{12}$")
    table: TableSettings = TableSettings()
    api: ApiSettings = ApiSettings()
    prewarm: Prewarm | None = None
    reshard: ReshardSettings = ReshardSettings()
    commands: CommandsSettings = CommandsSettings()
    changes: ChangesSettings = ChangesSettings()
    writer: WriterSettings = WriterSettings()
    growth: GrowthSettings = GrowthSettings()
    topology_lease_seconds: int = Field(default=30, ge=1, le=900)
    topology_operation_seconds: int | None = Field(default=None, ge=1, le=900)
    topology_skew_seconds: int = Field(default=1, ge=0, le=60)
    account_concurrency: int = Field(default=1000, ge=1)
    reserve_concurrency: bool = True
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_retention_days: Days = 30

    @property
    def production(self) -> bool:
        """Whether data is protected and kept."""
        return self.purpose == "production"

    @property
    def local(self) -> bool:
        """Whether the template is for this machine only."""
        return self.purpose == "local"

    @property
    def longest_operation_seconds(self) -> int:
        """Longest operation on the table, retries included."""
        return self.topology_operation_seconds or self.api.timeout_seconds

    @property
    def concurrency(self) -> dict[str, int]:
        """Most runs of each function at once, by the function's name."""
        return {
            "api": self.api.reserved_concurrency,
            "commands": self.commands.reserved_concurrency,
            "changes": self.changes.reserved_concurrency,
            # As many as both queues hand over at once: a batch that is refused counts as a delivery.
            "writer": self.writer.concurrency + self.writer.operations_concurrency,
            "reshard.work": self.reshard.reserved_concurrency,
            **SMALL_FUNCTIONS,
            **({} if self.prewarm is None else PREWARM_FUNCTIONS),
        }

    @model_validator(mode="after")
    def _concurrency_can_be_reserved(self) -> Self:
        wanted, most = sum(self.concurrency.values()), self.account_concurrency - UNRESERVED_CONCURRENCY
        if self.reserve_concurrency and wanted > most:
            raise ValueError(
                f"the functions reserve a concurrency of {wanted}, and Lambda lets an account with a quota of "
                f"{self.account_concurrency} reserve {max(0, most)}: lower reserved_concurrency of api, commands, "
                "changes or reshard, ask for a higher quota and say so in account_concurrency, or set "
                "reserve_concurrency to false"
            )
        return self

    @model_validator(mode="after")
    def _no_request_outlasts_an_operation(self) -> Self:
        if self.longest_operation_seconds < self.api.timeout_seconds:
            raise ValueError(
                f"topology_operation_seconds {self.topology_operation_seconds} is below api.timeout_seconds "
                f"{self.api.timeout_seconds}: a request could outlast the wait between two phases"
            )
        if self.longest_operation_seconds < LEAST_OPERATION_SECONDS:
            raise ValueError(
                f"topology_operation_seconds {self.longest_operation_seconds} is below {LEAST_OPERATION_SECONDS}: "
                "commands and Python clients take up to that long for one request. Set topology_operation_seconds to "
                f"{LEAST_OPERATION_SECONDS} or more"
            )
        return self

    @field_validator("auth")
    @classmethod
    def _issuer_is_https(cls, auth: AuthSettings, info: ValidationInfo) -> AuthSettings:
        if info.data.get("purpose") != "local" and not auth.issuer.startswith("https://"):
            raise ValueError(f"issuer {auth.issuer} must start with https:// (plain http is for local use only)")
        return auth

    @field_validator("api")
    @classmethod
    def _production_has_no_docs(cls, api: ApiSettings, info: ValidationInfo) -> ApiSettings:
        if info.data.get("purpose") == "production" and api.public_docs:
            raise ValueError("public_docs is not for production, which serves no documentation")
        return api


def load(
    environments: object,
    name: str,
    *,
    issuer: str | None = None,
    audience: str | None = None,
    tenant_claim: str | None = None,
) -> Settings:
    """Settings of one environment, checked.

    Args:
        environments: The `environments` context: environment name to its settings.
        name: The environment wanted (`-c env=NAME`).
        issuer: Takes the place of `auth.issuer` (`-c issuer=...`).
        audience: Takes the place of `auth.audience`, comma-separated (`-c audience=...`).
        tenant_claim: Takes the place of `auth.tenant_claim` (`-c tenant_claim=...`).

    Raises:
        SettingsError: Something is missing, unknown or wrong; one line, with the setting's full name.
    """
    if not isinstance(environments, Mapping) or not environments:
        raise SettingsError(
            "context.environments is missing in cdk.json: it maps an environment's name to its settings"
        )
    if name not in environments:
        raise SettingsError(
            f"environments.{name} does not exist in cdk.json; there are: {', '.join(sorted(environments))}"
        )
    raw = environments[name]
    if not isinstance(raw, Mapping):
        raise SettingsError(f"environments.{name} must be an object of settings")
    given = {
        "issuer": issuer,
        "audience": None if audience is None else [part.strip() for part in audience.split(",")],
        "tenant_claim": tenant_claim,
    }
    try:
        return Settings.model_validate({**_with_auth(raw, given), "name": name})
    except ValidationError as error:
        raise SettingsError(_one_line(name, error)) from None


def _with_auth(raw: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, Any]:
    """The settings, with what was given of the sign-in in place of what is stored."""
    changed = {key: value for key, value in given.items() if value is not None}
    stored = raw.get("auth")
    if not changed:
        return dict(raw)
    return {**raw, "auth": {**stored, **changed} if isinstance(stored, Mapping) else changed}


def _one_line(name: str, error: ValidationError) -> str:
    problems = []
    for problem in error.errors(include_url=False):
        where = ".".join([f"environments.{name}", *(str(part) for part in problem["loc"])])
        reason = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            reason = "there is no such setting"
        elif problem["type"] == "missing" and problem["loc"] == ("auth",):
            reason = f"nothing is public, so the API needs a sign-in; put it there, for example {AUTH_EXAMPLE}"
        elif problem["type"] == "missing":
            reason = "is required"
        problems.append(f"{where}: {reason}")
    return "; ".join(problems)
