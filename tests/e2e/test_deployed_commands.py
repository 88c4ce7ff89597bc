"""Direct invocation as deployed: the same items, rules and cursors as over REST."""

import pytest

from domain.samples.articles import Article
from domain.samples.users import User
from dynashard_client import Client
from dynashard_client.errors import AlreadyExistsError, NotFoundError, ValidationFailedError
from dynashard_serving.client_resources import client_resources
from dynashard_serving.domain import declared
from tests.e2e.deployment import PREFIX, Deployment

pytestmark = pytest.mark.e2e


def invoking(deployment: Deployment, tenant: str) -> Client:
    """Return a client of the deployed function, with the rights of the account."""
    function = deployment.outputs[f"{PREFIX}-Commands"]["CommandsFunction"]
    resources = client_resources(declared().entities)
    return Client.lambda_(function, tenant=tenant, resources=resources, client=deployment.aws.client("lambda"))


def test_items_and_cursors_are_shared_by_both_entry_points(deployment: Deployment) -> None:
    direct, rest = invoking(deployment, "direct").collection(User), deployment.tenant("direct")
    ada = User(tenant_id="direct", id="1", email="ada@example.com", display_name="Ada")

    created = direct.create(ada, idempotency_key="k")
    again = direct.create(ada, idempotency_key="k")
    rest.post("/v1/users", json={"id": "2", "email": "grace@example.com", "display_name": "Grace"}).raise_for_status()
    patched = direct.update(created, {"department": "maths"}, if_match=created.revision)
    first = rest.get("/v1/users?order=ordered&limit=1").json()
    second = direct.list(order="ordered", limit=1, cursor=first["cursor"])

    assert again == created
    assert [item["id"] for item in first["items"]] == ["1"]
    assert first["items"][0]["revision"] == patched.revision
    assert [user.id for user in second.items] == ["2"]


def test_errors_are_those_of_the_layer_and_tenants_are_separate(deployment: Deployment) -> None:
    users = invoking(deployment, "strict").collection(User)
    ada = users.create(User(tenant_id="strict", id="1", email="ada@example.com", display_name="Ada"))

    with pytest.raises(AlreadyExistsError):
        users.create(ada)
    with pytest.raises(ValidationFailedError):
        users.update(ada, {"email": "nobody"})
    with pytest.raises(NotFoundError):
        invoking(deployment, "stranger").collection(User).get({"id": "1"})


def test_several_partitions_are_one_listing(deployment: Deployment) -> None:
    articles = invoking(deployment, "press").collection(Article)
    for year in (2016, 2017):
        articles.create(
            Article.model_validate(
                {"tenant_id": "press", "author": "ada", "title": "On", "published_at": f"{year}-05-01T00:00:00Z"}
            )
        )

    page = articles.list({"author": "ada", "year": [2016, 2017]}, index="by_date", order="ordered", direction="desc")

    assert [article.year for article in page.items] == [2017, 2016]
