"""Uses the client that openapi-python-client generates. It runs in the environment of that generator.

Arguments: the folder of the package `generated`, the API's address, and a token.
"""

import importlib
import json
import sys
from typing import Any


def used(address: str, token: str) -> dict[str, Any]:
    """Create a user, list it and patch it, and return what came back."""
    client = importlib.import_module("generated.client").AuthenticatedClient(base_url=address, token=token)
    models = importlib.import_module("generated.models")
    create, listed, patch = (
        importlib.import_module(f"generated.api.users.{name}") for name in ("create_user", "list_user", "patch_user")
    )
    body = models.UserCreate(email="ada@example.com", display_name="Ada")
    created = create.sync(client=client, body=body)
    page = listed.sync(client=client)
    patched = patch.sync(created.id, client=client, body=models.UserPatch(department="engines"))
    return {
        "created": created.display_name,
        "listed": [user.id == created.id for user in page.items],
        "patched": patched.department,
        "type": type(patched).__name__,
    }


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    sys.stdout.write(json.dumps(used(sys.argv[2], sys.argv[3])))
