"""The local engine behind the simulator's limits, if `SIMULATE` names a scenario."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from local.engine import Engine, running_engine
from local.errors import LocalStackError
from local.settings import ROOT, Settings


@contextmanager
def limited_engine(settings: Settings) -> Iterator[Engine]:
    """Run the engine as `running_engine`; with `SIMULATE`, behind a model that throttles as a scenario's table would.

    Raises:
        LocalStackError: there is no such scenario, or the engine is not the stack's own; and as `running_engine`.
    """
    scenario = settings.simulate
    if scenario is None:
        with running_engine(settings) as engine:
            yield engine
        return
    if settings.dynamodb_endpoint is not None:
        raise LocalStackError("SIMULATE needs the stack's own engine: unset DYNAMODB_ENDPOINT.")
    with (
        running_engine(settings.model_copy(update={"dynamodb_port": 0})) as engine,
        _front(urlsplit(engine.endpoint).port or 80, settings.dynamodb_port, scenario) as endpoint,
    ):
        yield replace(engine, endpoint=endpoint)


@contextmanager
def _front(engine: int, port: int, scenario: str) -> Iterator[str]:
    command = [sys.executable, "-m", "local.partitions", str(engine), str(port), scenario]
    with subprocess.Popen(  # noqa: S603 - our own module
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            bound = process.stdout.readline().strip() if process.stdout is not None else b""
            if not bound:
                raise LocalStackError(f"SIMULATE={scenario} cannot be used on port {port}: the reason is above.")
            yield f"http://127.0.0.1:{int(bound)}"
        finally:
            if process.stdin is not None:
                process.stdin.close()
