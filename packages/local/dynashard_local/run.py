"""Assembles the local stack: engine, tables, functions, gateway, HTTP."""

import logging
import os
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from dynashard_local import stopping
from dynashard_local.bus.running import running_bus
from dynashard_local.bus.store import DATABASE as EVENTS
from dynashard_local.engine.guard import guarded_engine
from dynashard_local.engine.process import DATABASE, Engine
from dynashard_local.engine.tables import engine_client, ensure_tables, table_plans
from dynashard_local.errors import LocalStackError
from dynashard_local.functions.local_function import FunctionSpec, LocalFunction
from dynashard_local.functions.specs import CHANGES, COMMANDS, WRITER, cursor_key, function_named, function_specs
from dynashard_local.gateway.connections import GatewayConnection
from dynashard_local.gateway.http_api import Gateway
from dynashard_local.gateway.invocations import COMMANDS_NAME, Invoker
from dynashard_local.gateway.server import build_app
from dynashard_local.gateway.tokens import Issuer, local_key
from dynashard_local.logs import API_LOG, CHANGES_LOG, COMMANDS_LOG, RESHARD_LOG, WRITER_LOG, LogRotation
from dynashard_local.queues.running import Queues, running_queues, writer_variables
from dynashard_local.queues.store import DATABASE as QUEUES
from dynashard_local.reloading import Reloader
from dynashard_local.routes import route_table
from dynashard_local.settings import Settings
from dynashard_local.template import Templates, committed
from dynashard_local.workers.worker import Worker, WorkerSpec
from dynashard_serving.tenants import DEFAULT_PATTERN, TenantRule

BACKLOG = 2048
GRACE_SECONDS = 10

Starts = Worker | Reloader | LogRotation
"""What begins to work when the stack is ready."""


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Serve until Ctrl-C or SIGTERM, also if the process has inherited that they are ignored.

    Returns:
        The exit status: 0 after an orderly stop, 1 after one line on stderr that says what is wrong.
    """
    try:
        stopping.stop_in_order()
        with ExitStack() as stack:
            return _serve(Settings.from_env(environ), stack)
    except LocalStackError as error:
        sys.stderr.write(f"dynashard: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped.\n")
        return 0


def _serve(settings: Settings, stack: ExitStack) -> int:
    _prepare(settings.data_dir)
    listener = stack.enter_context(_listener(settings.port))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    engine = stack.enter_context(guarded_engine(settings))
    templates = committed()
    routes = route_table(templates)
    ensure_tables(engine_client(engine.endpoint), table_plans(templates), data=str(settings.data_dir))
    queues = stack.enter_context(running_queues(templates, settings))
    bus = stack.enter_context(running_bus(settings.data_dir))
    specs = _Specs(templates, settings, engine.endpoint, {**queues.variables, **bus.variables})
    served = specs.named(*{route.function for route in routes.routes})
    functions = {spec.name: _function(spec, settings, stack, API_LOG) for spec in served}
    for function in functions.values():
        function.generations.warm()
    # Not warmed, because most stacks never use it.
    direct = _function(commands := specs.of(COMMANDS), settings, stack, COMMANDS_LOG)
    every = [*functions.values(), direct]
    workers = _workers(specs, queues, served[0], stack)
    logs = LogRotation(settings.data_dir, _report)
    stack.callback(logs.close)
    started: list[Starts] = [logs, *workers, *_reloader(every, workers, settings, stack)]
    audience = routes.audience[0] if routes.audience else "local"
    issuer = Issuer(local_key(settings.data_dir), f"{url}/local", audience)
    gateway = Gateway(routes, issuer, functions, report=_report)
    app = build_app(
        gateway,
        issuer,
        tenant_claim=_function_variable(templates, "TENANT_CLAIM", "tenant_id"),
        tenants=TenantRule(_function_variable(templates, "TENANT_PATTERN", DEFAULT_PATTERN)),
        ready=lambda: _ready(started, banner(url, engine, settings)),
        greet=lambda commands: _say(f"\nTry:\n{commands}\n"),
        url=url,
        invoker=Invoker({commands.name: direct, COMMANDS_NAME: direct}, report=_report),
        events=bus.store,
        log=_access,
    )
    _answer(app, gateway, listener, engine, every)
    return 0


@dataclass(frozen=True, slots=True)
class _Specs:
    """How the template's functions run on this stack: with its engine, and the variables of its other services."""

    templates: Templates
    settings: Settings
    endpoint: str
    services: Mapping[str, str]

    def named(self, *names: str) -> list[FunctionSpec]:
        """Return the functions of these names."""
        key = cursor_key(self.settings.data_dir)
        found = function_specs(self.templates, names, settings=self.settings, endpoint=self.endpoint, cursor_key=key)
        return [replace(spec, environment={**spec.environment, **self.services}) for spec in found]

    def of(self, handler: str) -> FunctionSpec:
        """Return the function with a handler."""
        [found] = self.named(function_named(self.templates, handler))
        return found


def _workers(specs: _Specs, queues: Queues, served: FunctionSpec, stack: ExitStack) -> list[Worker]:
    """Return what works without being asked, each with the environment of a function."""
    writer = specs.of(WRITER)
    writer = replace(writer, environment={**writer.environment, **writer_variables(queues)})
    folder = specs.settings.data_dir
    found = (
        _background(served, folder, "dynashard_local.workers.resharding", RESHARD_LOG),
        _background(writer, folder, "dynashard_local.workers.queue_worker", WRITER_LOG, "functions.writer"),
        _background(
            specs.of(CHANGES), folder, "dynashard_local.workers.stream_consumer", CHANGES_LOG, "functions.changes"
        ),
    )
    return [_worker(spec, stack) for spec in found]


def _answer(
    app: ASGIApp, gateway: Gateway, listener: socket.socket, engine: Engine, functions: Iterable[LocalFunction]
) -> None:
    """Answer requests until a signal, or until the engine ends."""
    config = uvicorn.Config(
        app,
        # Uvicorn only calls it.
        http=partial(GatewayConnection, gateway.answer, _access),  # type: ignore[arg-type]
        log_level="info",
        # Its lines cost 50 us each; the application writes them itself.
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    server = uvicorn.Server(config)
    crashes = _stop_with(engine, server, functions)
    stopping.check()
    server.run(sockets=[listener])
    if crashes:
        raise LocalStackError(crashes[0])


def _prepare(data_dir: Path) -> None:
    # Nobody else on this machine reads the data. All processes of the stack inherit the mask.
    os.umask(0o077)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        probe = data_dir / ".writable"
        probe.touch()
        probe.unlink()
        for name in (f"{DATABASE}*", f"{QUEUES}*", f"{EVENTS}*", "*.log"):
            for file in data_dir.glob(name):
                file.chmod(0o600)
    except OSError as error:
        raise LocalStackError(f"DATA_DIR={data_dir} cannot be written ({error.strerror}): set another.") from None
    raise_file_limit()


def raise_file_limit() -> None:
    """Raise the limit of open files, because each request has a socket: 256 (macOS) or 1,024 are too few."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - does not exist on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _listener(port: int) -> socket.socket:
    # asyncio sets TCP_NODELAY only if the protocol is given. Without it every answer on a kept connection waits for an
    # acknowledgement, which takes 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise LocalStackError(
            f"Port {port} cannot be used for the API ({error.strerror}): free it, or set PORT."
        ) from None
    return listener


def _function(spec: FunctionSpec, settings: Settings, stack: ExitStack, log: str) -> LocalFunction:
    function = LocalFunction(
        spec,
        limit=settings.local_workers,
        log=settings.data_dir / log,
        places=settings.local_queue,
        processors=_processors(),
    )
    stack.callback(function.close)
    return function


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _background(spec: FunctionSpec, folder: Path, module: str, log: str, function: str = "") -> WorkerSpec:
    """Return a worker with the environment variables of a function."""
    environment = {**spec.environment, "DATA_DIR": str(folder)}
    return WorkerSpec(module, environment, folder / log, function)


def _worker(spec: WorkerSpec, stack: ExitStack) -> Worker:
    worker = Worker(spec, report=_report)
    stack.callback(worker.close)
    return worker


def _reloader(
    functions: Iterable[LocalFunction], workers: Iterable[Worker], settings: Settings, stack: ExitStack
) -> list[Reloader]:
    if settings.local_reload == "off":
        return []
    reloader = Reloader(functions, workers, say=_say)
    stack.callback(reloader.close)
    return [reloader]


def _ready(workers: Iterable[Starts], text: str) -> None:
    # Requests do not wait for the workers.
    for worker in workers:
        worker.start()
    _say(text)


def _function_variable(templates: Templates, variable: str, default: str) -> str:
    """Return the value of an environment variable of the functions."""
    for resource in templates.of_type("AWS::Lambda::Function"):
        variables = resource.properties.get("Environment", {}).get("Variables", {})
        if isinstance(variables.get(variable), str):
            return str(variables[variable])
    return default


def _stop_with(engine: Engine, server: uvicorn.Server, functions: Iterable[LocalFunction]) -> list[str]:
    crashes: list[str] = []

    def crashed(message: str) -> None:
        if not server.should_exit:
            crashes.append(message)
            server.should_exit = True
            # Calls under way cannot succeed any more: they are answered now, not after their last retry.
            for function in functions:
                function.abandon()

    engine.on_exit(crashed)
    return crashes


def banner(url: str, engine: Engine, settings: Settings) -> str:
    """Return where the stack is."""
    limits = ""
    if settings.simulate is not None:
        limits = f"\n  limits    of {settings.simulate}, at a 500th; `dynashard hot` shows what they throttle"
    return f"""
Dynashard is ready on {url}    (Ctrl-C stops it)
  data      {settings.data_dir}, engine at {engine.public or engine.endpoint}
  logs      {settings.data_dir / API_LOG}, and others in its folder; `.venv/bin/dynashard logs` reads them\
{limits}"""


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _access(line: str) -> None:
    # The request is answered also if nobody reads the output any more.
    with suppress(OSError):
        _say(line)


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
