"""An engine, the proxy in front of it, and the tables or the local stack of an API that uses the proxy."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dynashard import schema
from dynashard_checks.schedules.wire import LeanWire, create_tables, engine_in_memory
from dynashard_checks.truth.api_clients import TABLES
from dynashard_checks.truth.proxy import Attempt, Rates
from dynashard_local.root import backend_root
from dynashard_local.stack import running_stack


@dataclass(frozen=True)
class FaultyEngine:
    """An engine behind a proxy that injects faults.

    Attributes:
        wire: a connection to the engine without the proxy.
        port: the port of the proxy.
    """

    wire: LeanWire
    port: int

    @property
    def endpoint(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    def fail(self, rates: Rates) -> None:
        """Set the rates of faults from now on."""
        self._asked("POST", "/faults", json.dumps(asdict(rates)))

    def log(self) -> tuple[dict[str, Any], list[Attempt]]:
        """Return the numbers of requests and faults, and the ambiguous attempts of writes."""
        log = self._asked("GET", "/log")
        attempts = [Attempt(**{**each, "names": tuple(each["names"])}) for each in log.pop("attempts")]
        return log, attempts

    def _asked(self, method: str, path: str, body: str = "") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer


@contextmanager
def faulty_engine(seed: int) -> Iterator[FaultyEngine]:
    """Start an engine in memory, and a proxy that injects no faults yet."""
    with engine_in_memory() as wire:
        command = [sys.executable, "-m", "dynashard_checks.truth.proxy", str(wire.port), "--seed", str(seed)]
        with subprocess.Popen(  # noqa: S603 - this checkout's own module
            command,
            cwd=backend_root(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdin is not None  # noqa: S101 - asked for as pipes
            assert process.stdout is not None  # noqa: S101
            try:
                yield FaultyEngine(wire, int(process.stdout.readline()))
            finally:
                process.stdin.close()


def create_api_tables(wire: LeanWire) -> None:
    """Create the tables of an API without the local stack."""
    items, topology, idempotency = TABLES
    create_tables(wire, items, topology)
    wire.call(
        "CreateTable",
        {
            "TableName": idempotency,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": schema.IDEMPOTENCY_KEY, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": schema.IDEMPOTENCY_KEY, "AttributeType": "S"}],
        },
    )


@contextmanager
def local_stack_on(engine: FaultyEngine, data_dir: Path, *, lease: int) -> Iterator[str]:
    """Start the local stack on this engine, and yield its URL."""
    more = {
        # Slow answers and pauses would keep fewer environments busy.
        "LOCAL_WORKERS": "12",
        # A client sees at most ten seconds. The local default of four leaves only a fifth of it to look for evidence.
        "TOPOLOGY_OPERATION_SECONDS": "9",
    }
    with running_stack(data_dir, lease=lease, DYNAMODB_ENDPOINT=engine.endpoint, **more) as stack:
        yield stack.url
