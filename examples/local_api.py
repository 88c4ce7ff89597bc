"""The API of the local stack, for the scripts in this folder."""

import json
import os
import sys
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen


class LocalApi:
    """Calls `make run` for a tenant; whatever is refused ends the script with one line.

    Args:
        tenant: whose token is used.
    """

    def __init__(self, tenant: str) -> None:
        self._url = f"http://127.0.0.1:{os.environ.get('PORT', '8000')}"
        self._token = ""
        self._token = self.call("POST", "/local/tokens", {"tenant_id": tenant})["token"]

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The document that is answered."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        data = None if body is None else json.dumps(body).encode()
        asked = Request(self._url + path, data=data, headers=headers, method=method)  # noqa: S310 - a local URL
        try:
            with urlopen(asked) as answer:  # noqa: S310
                return json.load(answer)
        except HTTPError as error:
            sys.exit(f"error: {method} {path}: {error.code} {error.read().decode()[:500]}")
        except URLError as error:
            sys.exit(f"error: nothing answers at {self._url} ({error.reason}): start it with `make run`, or set PORT")


def the_tenant() -> str:
    """The tenant that the command line names."""
    if len(sys.argv) != 2:  # noqa: PLR2004 - the script, and its only argument
        sys.exit(f"usage: python {sys.argv[0]} TENANT")
    return sys.argv[1]
