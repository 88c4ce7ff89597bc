"""Sign-in out of the box, deployed: `dev` as shipped has a user pool, whose users reach the API by their tokens.

The local AWS lets anybody sign up, whatever the pool says; `tests/infra/test_user_pool.py` reads that in the template.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.deployment import PREFIX, Deployment, deployed_as_shipped

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

PASSWORD = "Correct-horse-7-battery"  # noqa: S105 - of users of the test alone


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed_as_shipped(tmp_path_factory.mktemp("user-pool")) as deployment:
        yield deployment


class Users:
    """The users of the pool, as an administrator and as they themselves act."""

    def __init__(self, deployment: Deployment) -> None:
        self.client = deployment.aws.client("cognito-idp")
        outputs = deployment.outputs[f"{PREFIX}-Data"]
        self.pool, self.app = outputs["UserPoolId"], outputs["UserPoolClientId"]

    def create(self, email: str, tenant: str) -> None:
        attributes = {"email": email, "email_verified": "true", "custom:tenant_id": tenant}
        self.client.admin_create_user(
            UserPoolId=self.pool,
            Username=email,
            MessageAction="SUPPRESS",
            UserAttributes=[{"Name": name, "Value": value} for name, value in attributes.items()],
        )
        self.client.admin_set_user_password(UserPoolId=self.pool, Username=email, Password=PASSWORD, Permanent=True)

    def allow(self, scope: str, *emails: str) -> None:
        """Give users the right that a group of this name stands for."""
        self.client.create_group(UserPoolId=self.pool, GroupName=scope)
        for email in emails:
            self.client.admin_add_user_to_group(UserPoolId=self.pool, GroupName=scope, Username=email)

    def sign_in(self, email: str) -> dict[str, str]:
        """Return the tokens of a user."""
        answer = self.client.admin_initiate_auth(
            UserPoolId=self.pool,
            ClientId=self.app,
            AuthFlow="ADMIN_USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": email, "PASSWORD": PASSWORD},
        )
        tokens: dict[str, str] = answer["AuthenticationResult"]
        return tokens


def test_users_of_the_pool_reach_the_items_of_their_tenant_and_no_others(shipped: Deployment) -> None:
    users = Users(shipped)
    users.create("ada@example.com", "engines")
    users.create("bob@example.com", "legal")
    for scope in ("users:read", "users:all"):
        users.allow(scope, "ada@example.com", "bob@example.com")
    users.allow("users:write", "ada@example.com")
    ada, bob = (shipped.client(users.sign_in(f"{name}@example.com")["IdToken"]) for name in ("ada", "bob"))

    made = ada.post("/v1/users", json={"email": "new@example.com", "display_name": "New"})

    assert made.status_code == 201
    assert [each["id"] for each in ada.get("/v1/users").json()["items"]] == [made.json()["id"]]
    assert bob.get("/v1/users").json() == {"items": [], "cursor": None}
    assert bob.get(f"/v1/users/{made.json()['id']}").status_code == 404
    refused = bob.post("/v1/users", json={"email": "new@example.com", "display_name": "New"})
    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")


def test_only_id_tokens_of_the_pools_client_are_admitted(shipped: Deployment) -> None:
    users = Users(shipped)
    users.create("cyd@example.com", "engines")
    tokens = users.sign_in("cyd@example.com")

    answers = [shipped.client(token).get("/v1/users").status_code for token in (None, "no", tokens["AccessToken"])]

    # The access token is admitted by the gateway on AWS too, where its client id counts as audience. It has no tenant.
    assert answers == [401, 401, 403]
