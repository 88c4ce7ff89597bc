"""The settings of the function."""

from typing import Annotated

from dynashard.errors import ConfigurationError
from dynashard_serving.access import SCOPE
from dynashard_serving.api.request import TenantClaim
from dynashard_serving.api.request_log import INFO, LEVELS
from dynashard_serving.settings import ServingSettings, Variable, optional


def _level(name: str, text: str) -> int:
    if text.upper() not in LEVELS:
        raise ConfigurationError(f"{name} is {text!r}; it must be one of {', '.join(LEVELS)}")
    return LEVELS[text.upper()]


class Settings(ServingSettings, frozen=True, kw_only=True):
    """Settings of the API, read once; production serves no OpenAPI document and no Swagger page.

    Attributes:
        tenant_claim: the token's claim that carries the tenant.
        scope_claim: the token's claim that lists the scopes.
        queue_url: the queue of new items; None if there is none.
        operations_queue_url: the queue of writes that callers do not wait for; None where there is none.
        log_level: lines below it are hidden unless they carry metrics, as `logging` numbers it.
    """

    tenant_claim: Annotated[str, Variable("TENANT_CLAIM")] = "tenant_id"
    scope_claim: Annotated[str, Variable("SCOPE_CLAIM")] = SCOPE
    queue_url: Annotated[str | None, Variable("QUEUE_URL", optional)] = None
    operations_queue_url: Annotated[str | None, Variable("OPERATIONS_QUEUE_URL", optional)] = None
    log_level: Annotated[int, Variable("LOG_LEVEL", _level)] = INFO

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tenant_claim:
            raise ConfigurationError("TENANT_CLAIM is empty: name the claim that carries the tenant")

    @property
    def tenant(self) -> TenantClaim:
        """The claim that carries the tenant, which texts are tenants, and the claim that lists the scopes."""
        return TenantClaim(self.tenant_claim, self.tenants, self.scope_claim)

    @property
    def serves_documentation(self) -> bool:
        """Whether `/v1/openapi.json` and `/v1/docs` exist."""
        return self.environment != "prod"
