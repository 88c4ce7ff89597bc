"""Has users follow actors on the local stack, one of whom is a celebrity. `python examples/follow.py abc`.

The argument is the tenant. It can be run again: following twice changes nothing.
"""

import json
import os
import random
import sys
from urllib.request import Request, urlopen

USERS, ACTORS, SEED = 1000, 50, 1815
CELEBRITY = "Actor.1"
URL = f"http://127.0.0.1:{os.environ.get('PORT', '8000')}"


def main(tenant: str) -> None:
    """Send the follows, then tell how many follow the celebrity."""
    source = random.Random(SEED)
    token = _call("POST", "/local/tokens", {"tenant_id": tenant})["token"]
    for user in range(1, USERS + 1):
        for actor in {CELEBRITY, f"Actor.{source.randint(2, ACTORS)}"}:
            _call("POST", "/v1/follows", {"node": f"User.{user}", "other": actor}, token)
        if user % 100 == 0:
            sys.stdout.write(f"{user} of {USERS} users\n")
    counts = _call("GET", f"/v1/follows/counts?of={CELEBRITY}", None, token)
    sys.stdout.write(f"{CELEBRITY}: {counts}\n")


def _call(method: str, path: str, body: object, token: str = "") -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(URL + path, data=data, headers=headers, method=method)) as answer:  # noqa: S310 - a local URL
        found: dict[str, str] = json.load(answer)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
