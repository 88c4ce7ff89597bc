"""The cost of a cold start before its first request, measured as the time of whole processes."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Final

from bench.measure import Fact
from bench.world import World

RUNS: Final = 9
BARE: Final = "pass"
CONNECT: Final = "from dynashard.transport import connect; connect(region='eu-west-1').warm()"
LAYER: Final = "from dynashard import Dynashard, Entity"
PROGRAMS: Final[Mapping[str, str]] = {
    "import dynashard.schema, as stacks do": "import dynashard.schema",
    "import the layer": LAYER,
    "build the transport's client": CONNECT,
    "import the layer and build the client": f"{LAYER}; {CONNECT}",
    "botocore: import and create_client": (
        "from botocore.session import Session; Session().create_client('dynamodb', region_name='eu-west-1')"
    ),
}


def rows(world: World) -> Iterator[Fact]:
    """Yield the median milliseconds above an empty program. Runs of the programs are interleaved."""
    del world
    seconds: dict[str, list[float]] = {program: [] for program in (BARE, *PROGRAMS.values())}
    for _ in range(RUNS):
        for program, taken in seconds.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - the programs above
            taken.append(time.perf_counter() - started)
    bare = statistics.median(seconds[BARE])
    for name, program in PROGRAMS.items():
        yield Fact("cold start", name, round((statistics.median(seconds[program]) - bare) * 1000), "ms")
