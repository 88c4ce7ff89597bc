"""The local engine behind the port that people and tools use, and behind the simulator's limits with `SIMULATE`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from dynashard_local.engine.process import Engine, refuse_taken, running_engine
from dynashard_local.errors import LocalStackError
from dynashard_local.hosts import hidden_host
from dynashard_local.root import backend_root
from dynashard_local.settings import Settings


@contextmanager
def guarded_engine(settings: Settings) -> Iterator[Engine]:
    """Run the engine as `running_engine`, where no web page finds it, and behind `front` on `DYNAMODB_PORT`.

    With `SIMULATE` all its users meet a model that throttles as a scenario's table would. An engine that
    `DYNAMODB_ENDPOINT` names is used as it is.

    Raises:
        LocalStackError: there is no such scenario, or the engine is not the stack's own; and as `running_engine`.
    """
    scenario = settings.simulate
    if settings.dynamodb_endpoint is not None:
        if scenario is not None:
            raise LocalStackError("SIMULATE needs the stack's own engine: unset DYNAMODB_ENDPOINT.")
        with running_engine(settings) as engine:
            yield engine
        return
    hidden = settings.model_copy(update={"dynamodb_port": 0})
    refuse_taken("127.0.0.1", settings.dynamodb_port)
    with running_engine(hidden, hidden_host()) as engine, _front(engine, settings) as public:
        yield replace(engine, endpoint=public if scenario else engine.endpoint, public=public)


@contextmanager
def _front(engine: Engine, settings: Settings) -> Iterator[str]:
    at, port, scenario = urlsplit(engine.endpoint), settings.dynamodb_port, settings.simulate
    command = [sys.executable, "-m", "dynashard_local.engine.front", str(at.hostname), str(at.port), str(port)]
    with subprocess.Popen(  # noqa: S603 - our own module
        command if scenario is None else [*command, scenario],
        cwd=backend_root(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            bound = process.stdout.readline().strip() if process.stdout is not None else b""
            if not bound:
                wanted = "DYNAMODB_PORT" if scenario is None else f"SIMULATE={scenario}"
                raise LocalStackError(f"{wanted} cannot be used on port {port}: the reason is above.")
            yield f"http://127.0.0.1:{int(bound)}"
        finally:
            if process.stdin is not None:
                process.stdin.close()
