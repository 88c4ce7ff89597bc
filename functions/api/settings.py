"""What the function is told by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynashard.errors import ConfigurationError
from dynashard_serving.settings import ServingSettings
from functions.api.request import TenantClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServingSettings):
    """Settings of the API, read once; production serves no OpenAPI document and no Swagger page.

    Attributes:
        tenant_claim: the token's claim that carries the tenant.
        queue_url: the queue of what is only added; None where there is none.
        operations_queue_url: the queue of writes that callers do not wait for; None where there is none.
    """

    tenant_claim: str = "tenant_id"
    queue_url: str | None = None
    operations_queue_url: str | None = None

    def __post_init__(self) -> None:
        ServingSettings.__post_init__(self)
        if not self.tenant_claim:
            raise ConfigurationError("TENANT_CLAIM is empty: name the claim that carries the tenant")

    @property
    def tenant(self) -> TenantClaim:
        """The claim that carries the tenant, and which texts are tenants."""
        return TenantClaim(self.tenant_claim, self.tenants)

    @property
    def serves_documentation(self) -> bool:
        """Whether `/v1/openapi.json` and `/v1/docs` exist."""
        return self.environment != "prod"

    @classmethod
    def values_from(cls, environ: Mapping[str, str]) -> dict[str, Any]:
        """As of `ServingSettings`, and those that this adds."""
        return {
            **ServingSettings.values_from(environ),
            "tenant_claim": environ.get("TENANT_CLAIM", "tenant_id"),
            "queue_url": environ.get("QUEUE_URL") or None,
            "operations_queue_url": environ.get("OPERATIONS_QUEUE_URL") or None,
        }
