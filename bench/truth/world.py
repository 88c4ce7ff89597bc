"""An engine, the proxy in front of it, and the API behind the proxy: in process, or as the local stack over HTTP."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.soak.stack import ROOT, running_stack
from bench.truth.proxy import Attempt, Rates
from bench.truth.ways import TABLES
from dynashard import schema
from tests.resharding.wire import LeanWire, create_tables, engine_in_memory


@dataclass(frozen=True)
class FaultyEngine:
    """An engine behind a proxy that fails as it is told.

    Attributes:
        wire: straight to the engine.
        port: of the proxy.
    """

    wire: LeanWire
    port: int

    @property
    def endpoint(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    def fail(self, rates: Rates) -> None:
        """Fail this often from now on."""
        self._asked("POST", "/faults", json.dumps(asdict(rates)))

    def log(self) -> tuple[dict[str, Any], list[Attempt]]:
        """How much was asked and failed, and the ambiguous attempts of writes."""
        told = self._asked("GET", "/log")
        attempts = [Attempt(**{**each, "names": tuple(each["names"])}) for each in told.pop("attempts")]
        return told, attempts

    def _asked(self, method: str, path: str, body: str = "") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer


@contextmanager
def faulty_engine(seed: int) -> Iterator[FaultyEngine]:
    """An engine in memory, and the proxy, which fails nothing yet."""
    with engine_in_memory() as wire:
        command = [sys.executable, "-m", "bench.truth.proxy", str(wire.port), "--seed", str(seed)]
        with subprocess.Popen(  # noqa: S603 - this checkout's own module
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            assert process.stdin is not None  # noqa: S101 - asked for as pipes
            assert process.stdout is not None  # noqa: S101
            try:
                yield FaultyEngine(wire, int(process.stdout.readline()))
            finally:
                process.stdin.close()


def create_api_tables(wire: LeanWire) -> None:
    """The tables of an API in process."""
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
    """The local stack on this engine; its URL."""
    more = {
        # Requests wait more than they work: slow answers and pauses would keep a few environments busy.
        "LOCAL_WORKERS": "12",
        # Ten seconds with what a client waits besides; the local default of four leaves a fifth of it for evidence.
        "TOPOLOGY_OPERATION_SECONDS": "9",
    }
    with running_stack(data_dir, lease=lease, DYNAMODB_ENDPOINT=engine.endpoint, **more) as stack:
        yield stack.url
