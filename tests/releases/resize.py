"""Request a resize of one tenant's users under the code of a release: `python resize.py ENDPOINT`.

Further arguments are the tenant, the new count, and the write units a second that moving may consume. Prints where the
code is.
"""

import json
import sys
from importlib import import_module
from typing import Any

import dynashard
from dynashard import definition
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.transport import connect

TABLE, TOPOLOGY = "Dynashard-local-Data-Table", "Dynashard-local-Data-Topology"
TIMES = {"TOPOLOGY_LEASE_SECONDS": "1", "TOPOLOGY_OPERATION_SECONDS": "1", "TOPOLOGY_SKEW_SECONDS": "0"}
"""The settings of the stacks that carry the resize out."""


def users() -> Any:
    """Return the users of the release whose code this is."""
    try:
        from dynashard_serving.domain import declared  # noqa: PLC0415 - release 0.1.0 does not have it
    except ModuleNotFoundError:
        return import_module("domain").User
    return next(each.entity for each in declared().entities if each.path == "users")


def main(endpoint: str, tenant: str, to: str, budget: str) -> None:
    wire = connect(endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106 - no secret
    timing = Timing(*(float(TIMES[f"TOPOLOGY_{name}_SECONDS"]) for name in ("LEASE", "OPERATION", "SKEW")))
    user = users()
    resharder = Resharder(wire, table=TABLE, topology_table=TOPOLOGY, entities=[user], timing=timing)
    resharder.start(Scope(definition(user), f"{definition(user).name}:{tenant}"), int(to), budget=float(budget))
    sys.stdout.write(json.dumps(dynashard.__path__[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
