"""A scratch sign-in: a Cognito user pool with one user, for an environment that has no sign-in of its own yet."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard_checks.verify_aws.scratch import PREFIX, TAG, Scratch
from dynashard_serving.domain import declared
from dynashard_tools.environments import backend_context
from dynashard_tools.failure import CommandError

USER: Final = "verify"
"""The only user, and so the tenant of all calls."""
TENANT_CLAIM: Final = "cognito:username"
GROUPS_CLAIM: Final = "cognito:groups"
_PAGE: Final = 60


@dataclass(frozen=True, slots=True)
class SignIn:
    """An issuer, and a token of it that is never shown."""

    issuer: str
    audience: str
    token: str = field(repr=False)

    @property
    def options(self) -> Sequence[str]:
        """The arguments of `cdk deploy` that make the environment accept its tokens."""
        context = {
            "issuer": self.issuer,
            "audience": self.audience,
            "tenant_claim": TENANT_CLAIM,
            "scope_claim": GROUPS_CLAIM,
        }
        return [f"--context={name}={value}" for name, value in context.items()]


def refuse_if_signed_in(environment: str, *, deployed: bool) -> None:
    """Raise `CommandError` if an environment has a sign-in, whose callers a scratch sign-in would lock out."""
    auth = backend_context()["environments"].get(environment, {}).get("auth", {})
    # A user pool of the backend's own has no users before it is deployed.
    if auth and "user_pool" not in auth:
        raise CommandError(f"{environment} has a sign-in in cdk.json: give a token of it, not --scratch-sign-in")
    if deployed:
        raise CommandError(
            f"{environment} is deployed already, and a scratch sign-in would replace the one that it has: give a token "
            f"of that, or remove it with make destroy ENV={environment}"
        )


def scratch_sign_in(client: Callable[[str], Any], scratch: Scratch) -> SignIn:
    """Create a user pool with a client and a user, and return a token. The pool is removed with the scratch resources.

    Cost: nothing; Cognito's first users are free.
    """
    cognito, name = client("cognito-idp"), f"{PREFIX}{scratch.run}-users"
    scratch.defer(f"user pool {name}", lambda: remove_pools(cognito, name))
    pool = cognito.create_user_pool(
        PoolName=name, UserPoolTags={TAG: scratch.run}, AdminCreateUserConfig={"AllowAdminCreateUserOnly": True}
    )["UserPool"]["Id"]
    audience = cognito.create_user_pool_client(
        UserPoolId=pool,
        ClientName=name,
        ExplicitAuthFlows=["ALLOW_ADMIN_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"],
    )["UserPoolClient"]["ClientId"]
    # The ending satisfies any policy of passwords.
    password = f"{secrets.token_urlsafe(32)}aA1!"
    cognito.admin_create_user(UserPoolId=pool, Username=USER, MessageAction="SUPPRESS")
    # Groups come with the ID token, so they are its scopes.
    for scope in declared().declarations.scopes:
        cognito.create_group(UserPoolId=pool, GroupName=scope)
        cognito.admin_add_user_to_group(UserPoolId=pool, Username=USER, GroupName=scope)
    cognito.admin_set_user_password(UserPoolId=pool, Username=USER, Password=password, Permanent=True)
    answer = cognito.admin_initiate_auth(
        UserPoolId=pool,
        ClientId=audience,
        AuthFlow="ADMIN_USER_PASSWORD_AUTH",
        AuthParameters={"USERNAME": USER, "PASSWORD": password},
    )
    region = cognito.meta.region_name
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    issuer = f"https://cognito-idp.{region}.{domain}/{pool}"
    return SignIn(issuer, audience, answer["AuthenticationResult"]["IdToken"])


def remove_pools(cognito: Any, prefix: str) -> None:
    """Delete the scratch user pools whose names begin so."""
    for pool in pools(cognito, prefix):
        cognito.delete_user_pool(UserPoolId=pool)


def pools(cognito: Any, prefix: str) -> list[str]:
    """Return the ids of the scratch user pools whose names begin so: those with the tag."""
    pages = cognito.get_paginator("list_user_pools").paginate(MaxResults=_PAGE)
    found = [pool["Id"] for page in pages for pool in page["UserPools"] if pool["Name"].startswith(prefix)]
    return [pool for pool in found if TAG in cognito.describe_user_pool(UserPoolId=pool)["UserPool"]["UserPoolTags"]]
