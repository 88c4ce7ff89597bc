"""Has users follow actors on the local stack, one of whom is a celebrity. `python examples/follow.py abc`.

The argument is the tenant. It can be run again: following twice changes nothing.
"""

import random
import sys

from local_api import LocalApi, the_tenant

USERS, ACTORS, SEED = 1000, 50, 1815
CELEBRITY = "Actor.1"


def main(tenant: str) -> None:
    """Send the follows, then tell how many follow the celebrity."""
    source, api = random.Random(SEED), LocalApi(tenant)
    for user in range(1, USERS + 1):
        for actor in (CELEBRITY, f"Actor.{source.randint(2, ACTORS)}"):
            api.call("POST", "/v1/follows", {"node": f"User.{user}", "other": actor})
        if user % 100 == 0:
            sys.stdout.write(f"{user} of {USERS} users\n")
    sys.stdout.write(f"{CELEBRITY}: {api.call('GET', f'/v1/follows/counts?of={CELEBRITY}')}\n")


if __name__ == "__main__":
    main(the_tenant())
