"""Typed settings of one environment, read from the `environments` context of `cdk.json`.

An unknown setting, a value out of bounds and a missing sign-in are refused before anything is synthesised, each by its
full name.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from dynashard_cdk.deploy_settings import BudgetSettings, DeploySettings
from dynashard_cdk.sections import (
    ISSUER,
    POOL,
    ApiSettings,
    ChangesSettings,
    CommandsSettings,
    GrowthSettings,
    LogsSettings,
    MonitoringSettings,
    Prewarm,
    ProvisionedPrewarm,
    ReshardSettings,
    RestoredTables,
    Section,
    SignIn,
    UserPoolAuth,
    WriterSettings,
)
from dynashard_cdk.table_settings import TableSettings

LEAST_OPERATION_SECONDS: Final = 10
"""Least wait of a resize for an operation: commands and Python clients bound requests by it."""
NOWHERE: Final = "000000000000"
"""The account of templates that must never be deployed: the CLI refuses any other account."""

UNRESERVED_CONCURRENCY: Final = 100
"""Concurrency of an account that Lambda does not let functions reserve."""
SMALL_FUNCTIONS: Final = {
    "reshard.advance": 5,
    "reshard.stop": 2,
    "reshard.dispatch": 2,
    "reshard.operate": 2,
    "reshard.watch": 2,
}
"""Concurrency of functions that do little. Their callers try again when they are refused."""
PREWARM_FUNCTIONS: Final = {"prewarm.step": 2, "prewarm.begin": 2}

KEY_ARN: Final = r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$"

Days = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653]
Purpose = Literal["local", "development", "production"]

POOL_EXAMPLE = '{"user_pool": {}}'
AUTH_EXAMPLE = '{"issuer": "https://login.example.com/", "audience": ["my-api"], "tenant_claim": "tenant_id"}'


class SettingsError(ValueError):
    """A setting is missing, unknown or wrong; the message is one line and names it."""


class Settings(Section):
    """One environment; its name is part of every stack's name."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,19}$")
    purpose: Purpose
    """`production` protects and keeps data; `local` never leaves this machine."""
    auth: SignIn
    region: str | None = Field(default=None, pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")
    """Where the stacks go; None for the region of the CLI's configuration."""
    account: str | None = Field(default=None, pattern=r"^\d{12}$")
    """Where the stacks go; None for the account of the CLI's configuration. The CLI refuses a wrong one."""
    table: TableSettings = TableSettings()
    api: ApiSettings = ApiSettings()
    prewarm: Prewarm | None = None
    reshard: ReshardSettings = ReshardSettings()
    commands: CommandsSettings = CommandsSettings()
    changes: ChangesSettings = ChangesSettings()
    writer: WriterSettings = WriterSettings()
    deploy: DeploySettings = DeploySettings()
    growth: GrowthSettings = GrowthSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    budget: BudgetSettings | None = None
    restored: RestoredTables | None = None
    encryption_key: str | None = Field(default=None, pattern=KEY_ARN)
    """ARN of a key of KMS for tables, queues, logs and the secret; None for keys that AWS owns or manages."""
    topology_lease_seconds: int = Field(default=30, ge=1, le=900)
    """How long a reader may use a view of the shard counts."""
    topology_operation_seconds: int | None = Field(default=None, ge=1, le=900)
    """Longest operation on the table, retries included; None for the API's timeout. Resizes wait for it."""
    topology_skew_seconds: int = Field(default=1, ge=0, le=60)
    """Most that two clocks may differ."""
    topology_clock_seconds: int = Field(default=5, ge=2, le=60)
    """How far a clock may be off, where counts depend on the time of keys; a `Date` shows it to a second or two."""
    topology_ahead_seconds: int = Field(default=5, ge=1, le=3600)
    """How far the time of such a key may be ahead of the clock of the process that writes it."""
    account_concurrency: int = Field(default=1000, ge=1)
    """The account's quota of concurrent executions in the region, which all functions share."""
    reserve_concurrency: bool = True
    """Reserve each function's concurrency. An account with a quota below 1,000 needs false until AWS has raised it.

    `cdk.json` ships false for dev and prod, because the quota of a new account allows no reservation.
    """
    transport: Literal["botocore", "direct"] = "direct"
    """What signs and sends the functions' requests to DynamoDB."""
    trace_calls: bool = False
    """Show the calls of DynamoDB in the traces of X-Ray."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_retention_days: Days = 30
    logs: LogsSettings = LogsSettings()

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
            # As many batches as both queues deliver at once, because a refused batch counts as a delivery.
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
    def _restored_tables_are_on_demand(self) -> Self:
        if self.restored is not None and (self.table.provisioned or self.prewarm is not None):
            raise ValueError(
                "restored tables have the capacity with which they were restored: set table.mode to on_demand, and "
                "leave prewarm out"
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

    @model_validator(mode="after")
    def _prewarm_fits_the_mode(self) -> Self:
        if self.table.provisioned and isinstance(self.prewarm, ProvisionedPrewarm):
            raise ValueError(
                "prewarm.way provisioned ends by switching the table to on-demand, and table.mode is provisioned: "
                "set prewarm.way to native, which warms the table in either mode"
            )
        return self

    @field_validator("auth")
    @classmethod
    def _fits_where_it_runs(cls, auth: SignIn, info: ValidationInfo) -> SignIn:
        local = info.data.get("purpose") == "local"
        if isinstance(auth, UserPoolAuth):
            if local:
                raise ValueError("user_pool is not for the local stack, which issues tokens itself: write an issuer")
        elif not local and not auth.issuer.startswith("https://"):
            raise ValueError(f"issuer {auth.issuer} must start with https:// (plain http is for local use only)")
        return auth

    @field_validator("encryption_key")
    @classmethod
    def _is_in_its_region(cls, key: str | None, info: ValidationInfo) -> str | None:
        if key is None:
            return None
        if info.data.get("purpose") == "local":
            raise ValueError("the local stack encrypts nothing")
        own = key.split(":")[3]
        # A wrong region is reported by itself.
        region = info.data.get("region", own)
        if region is None:
            raise ValueError(f"tables with a key of yours must know their region: set region to {own}")
        if region != own:
            raise ValueError(f"{key} is not a key of {region}: tables and queues can only use keys of their own region")
        return key

    @field_validator("deploy")
    @classmethod
    def _shifts_traffic_of_aws(cls, deploy: DeploySettings, info: ValidationInfo) -> DeploySettings:
        if info.data.get("purpose") == "local" and deploy.canary is not None:
            raise ValueError("canary is not for the local stack, which runs the code of the checkout")
        return deploy

    @field_validator("api")
    @classmethod
    def _fits_the_purpose(cls, api: ApiSettings, info: ValidationInfo) -> ApiSettings:
        if info.data.get("purpose") == "production" and api.public_docs:
            raise ValueError("public_docs is not for production, which serves no documentation")
        if info.data.get("purpose") == "local" and api.snap_start:
            raise ValueError("snap_start is not for the local stack, which has no snapshots")
        return api


def load(
    environments: object,
    name: str,
    *,
    issuer: str | None = None,
    audience: str | None = None,
    tenant_claim: str | None = None,
    scope_claim: str | None = None,
) -> Settings:
    """Return the checked settings of the environment `-c env=NAME`, with a sign-in that replaces the stored one.

    Audiences are separated by commas.

    Raises:
        SettingsError: a setting is missing, unknown or wrong; one line, with the setting's full name.
    """
    if not isinstance(environments, Mapping) or not environments:
        raise SettingsError(
            "context.environments is missing in cdk.json: it maps an environment's name to its settings"
        )
    if name not in environments:
        raise SettingsError(
            f"environments.{name} does not exist in cdk.json. There are: {', '.join(sorted(environments))}"
        )
    raw = environments[name]
    if not isinstance(raw, Mapping):
        raise SettingsError(f"environments.{name} must be an object of settings")
    given = {
        "issuer": issuer,
        "audience": None if audience is None else [part.strip() for part in audience.split(",")],
        "tenant_claim": tenant_claim,
        "scope_claim": scope_claim,
    }
    try:
        return Settings.model_validate({**_with_auth(raw, given), "name": name})
    except ValidationError as error:
        raise SettingsError(_one_line(name, error)) from None


def _with_auth(raw: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, Any]:
    """Replace parts of the sign-in by those that were given."""
    changed = {key: value for key, value in given.items() if value is not None}
    stored = raw.get("auth")
    if not changed:
        return dict(raw)
    if isinstance(stored, Mapping) and POOL not in stored:
        changed = {**stored, **changed}
    return {**raw, "auth": changed}


def _one_line(name: str, error: ValidationError) -> str:
    problems = []
    for problem in error.errors(include_url=False):
        loc = problem["loc"]
        if len(loc) > 1 and loc[0] == "auth" and loc[1] in {POOL, ISSUER}:
            # pydantic names the way of signing in, which is not a setting.
            loc = (loc[0], *loc[2:])
        where = ".".join([f"environments.{name}", *(str(part) for part in loc)])
        reason = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            reason = "there is no such setting"
        elif problem["type"] == "missing" and problem["loc"] == ("auth",):
            reason = f"nothing is public, so the API needs a sign-in; for example {POOL_EXAMPLE}, or {AUTH_EXAMPLE}"
        elif problem["type"] == "missing":
            reason = "is required"
        problems.append(f"{where}: {reason}")
    return "; ".join(problems)
