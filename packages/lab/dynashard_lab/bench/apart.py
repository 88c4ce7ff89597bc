"""One client in a fresh process, which prints what it cost as JSON.

python -m dynashard_lab.bench.apart cold layer_direct:Direct URL     # from the first import to the first answered GET
python -m dynashard_lab.bench.apart scan layer_direct:Direct URL     # all items, imports not included
"""

import sys
import time
from importlib import import_module
from typing import Any


def main() -> None:
    """Do what the command line says, and print the cost."""
    work, place, url = sys.argv[1:]
    wall, cpu = time.perf_counter(), time.process_time()
    module, _, kind = place.partition(":")
    client: Any = getattr(import_module(f"dynashard_lab.bench.clients.{module}"), kind)(url, 16)
    if work == "scan":
        wall, cpu = time.perf_counter(), time.process_time()
    answer = client.get() if work == "cold" else client.scan()
    done = answer if client.loop is None else client.loop.run_until_complete(answer)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    items = done if work == "scan" else int(done is not None)
    print(f'{{"items": {items}, "cpu": {cpu}, "wall": {wall}, "megabytes": {peak()}}}')
    client.close()


def peak() -> float:
    """Return the highest resident memory, in MB."""
    if sys.platform == "linux":
        # On Linux, ru_maxrss includes the process that started this one.
        with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - pathlib would be imported for it
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**10
    resource = import_module("resource")
    used: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 2**20


if __name__ == "__main__":
    main()
