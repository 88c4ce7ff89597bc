"""Uses the client that openapi-python-client generates. It runs in the environment of that generator.

Arguments: the folder of the package `generated`, the API's address, and a token.
"""

import importlib
import json
import sys
from typing import Any


def used(address: str, token: str) -> dict[str, Any]:
    """Create a user, list, patch and read it, and return what came back."""
    client = importlib.import_module("generated.client").AuthenticatedClient(base_url=address, token=token)
    models = importlib.import_module("generated.models")
    names = ("create_user", "get_user", "list_user", "patch_user")
    create, get, listed, patch = (importlib.import_module(f"generated.api.users.{name}") for name in names)
    body = models.UserCreate(email="ada@example.com", display_name="Ada")
    created = create.sync(client=client, body=body)
    page = listed.sync(client=client)
    patched = patch.sync(created.id, client=client, body=models.UserPatch(department="engines"))
    read = get.sync(created.id, client=client)
    part = get.sync(created.id, client=client, fields="department")
    return {
        "created": created.display_name,
        "listed": [user.id == created.id for user in page.items],
        "patched": patched.department,
        "type": type(patched).__name__,
        "read": type(read).__name__,
        "part": {"type": type(part).__name__, "department": part.department},
    }


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    sys.stdout.write(json.dumps(used(sys.argv[2], sys.argv[3])))
