"""`python -m local.resharding`: carries out changes of shard counts on the local engine, until standard input ends.

It does what a deployed backend does with a state machine, by the same steps. It may be killed at any moment: whoever
is started next goes on where the topology table says that things stand.
"""

import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Event, Thread

from domain import ENTITIES
from dynashard.resharding import Resharder, Timing, drive
from dynashard.transport import connect


def resharder(environ: Mapping[str, str]) -> Resharder:
    """What changes the counts of this backend's entities, from the environment variables of its functions.

    Args:
        environ: names the tables, the engine and the times.

    Cost: no request.
    """
    transport = connect(
        endpoint_url=environ["DYNAMODB_ENDPOINT"],
        region=environ["AWS_REGION"],
        access_key=environ["AWS_ACCESS_KEY_ID"],
        secret_key=environ["AWS_SECRET_ACCESS_KEY"],
    )
    return Resharder(
        transport,
        table=environ["TABLE_NAME"],
        topology_table=environ["TOPOLOGY_TABLE"],
        entities=[each.entity for each in ENTITIES],
        timing=timing(environ),
    )


def timing(environ: Mapping[str, str]) -> Timing:
    """The times that bound how long anybody may act on what was published before."""
    return Timing(
        lease=float(environ["TOPOLOGY_LEASE_SECONDS"]),
        operation=float(environ["TOPOLOGY_OPERATION_SECONDS"]),
        skew=float(environ["TOPOLOGY_SKEW_SECONDS"]),
    )


def main() -> None:
    """Work until standard input ends."""
    Thread(target=_end_with_input, daemon=True).start()
    never = Event()
    drive(resharder(os.environ), stop=never.is_set, sleep=time.sleep, log=_log)


def _end_with_input() -> None:
    # Not orderly on purpose: a worker that may be killed anywhere needs no second way to end.
    sys.stdin.buffer.read()
    os._exit(0)


def _log(line: str) -> None:
    sys.stdout.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
