"""Sign-in out of the box: a Cognito user pool whose users have a tenant."""

from typing import Final

from aws_cdk import CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from dynashard_cdk.function import acknowledge
from dynashard_cdk.sections import TENANT_ATTRIBUTE
from dynashard_cdk.settings import Settings

TOKEN_HOURS: Final = 1
REFRESH_DAYS: Final = 30
PASSWORD_LENGTH: Final = 12


class UserPool(Construct):
    """A pool whose users an administrator creates, each with a tenant that nobody can change.

    The API admits the pool's ID tokens, because Cognito puts an attribute of a user into an access token only by a
    function that it calls for every token.

    Attributes:
        pool: the pool, for what a backend adds to it in `stacks/backend.py`.
        issuer: the issuer of the tokens.
        audience: the client that the tokens are for.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self.pool = self._pool(settings)
        client = self._client(self.pool)
        self.issuer: str = self.pool.user_pool_provider_url
        self.audience: str = client.user_pool_client_id
        CfnOutput(self, "Id", value=self.pool.user_pool_id).override_logical_id("UserPoolId")
        CfnOutput(self, "ClientId", value=client.user_pool_client_id).override_logical_id("UserPoolClientId")

    def _pool(self, settings: Settings) -> cognito.UserPool:
        pool = cognito.UserPool(
            self,
            "Pool",
            user_pool_name=f"dynashard-{settings.name}",
            # A stranger who could sign up could choose a tenant.
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(email=True),
            auto_verify=cognito.AutoVerifiedAttrs(email=True),
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            custom_attributes={
                # Set once, by the call that creates the user. A client that may write all attributes, which is the
                # default of new clients, could move its users to another tenant otherwise.
                TENANT_ATTRIBUTE: cognito.StringAttribute(min_len=1, max_len=256, mutable=False)
            },
            mfa=cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            password_policy=cognito.PasswordPolicy(
                min_length=PASSWORD_LENGTH,
                require_digits=True,
                require_lowercase=True,
                require_symbols=True,
                require_uppercase=True,
                temp_password_validity=Duration.days(3),
            ),
            deletion_protection=settings.production,
            removal_policy=RemovalPolicy.RETAIN if settings.production else RemovalPolicy.DESTROY,
        )
        acknowledge(
            pool,
            "AwsSolutions::AwsSolutions-COG2",
            "MFA is optional: the pool cannot know whether its users are people, and a required factor would lock out "
            "programs that sign in.",
        )
        acknowledge(
            pool,
            "AwsSolutions::AwsSolutions-COG8",
            "Threat protection needs the Plus plan, which costs by user and month; the pool is free for its first "
            "users. docs/security.md says how to choose another plan.",
        )
        return pool

    def _client(self, pool: cognito.UserPool) -> cognito.UserPoolClient:
        return pool.add_client(
            "Client",
            # A browser or an app cannot keep a secret.
            generate_secret=False,
            auth_flows=cognito.AuthFlow(user_srp=True, admin_user_password=True),
            disable_o_auth=True,
            prevent_user_existence_errors=True,
            enable_token_revocation=True,
            id_token_validity=Duration.hours(TOKEN_HOURS),
            access_token_validity=Duration.hours(TOKEN_HOURS),
            refresh_token_validity=Duration.days(REFRESH_DAYS),
            read_attributes=cognito.ClientAttributes()
            .with_standard_attributes(email=True, email_verified=True)
            .with_custom_attributes(TENANT_ATTRIBUTE),
            write_attributes=cognito.ClientAttributes().with_standard_attributes(email=True),
        )
