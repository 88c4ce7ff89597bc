"""`python -m dynashard_local` as a process of its own, as a person starts it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Self

import httpx

from tests.processes import signals_as_by_default
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(r"ready on (http://127\.0\.0\.1:\d+)")


def checkout_for_loads(folder: Path) -> Path:
    """Make a folder with the checkout's programs and a copy of its examples.

    A load keeps its state next to the file that it reads, so two loads of one file at a time would share it.
    """
    folder.mkdir()
    (folder / ".venv").symlink_to(ROOT / ".venv")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("*.load-state"))
    return folder


@dataclass
class LocalProcess:
    """A local stack on a data folder, on free ports unless `environment` says otherwise.

    `ignoring` names the signals that it inherits as ignored, `checkout` and `python` whose code runs, and by which
    interpreter. The code is not watched unless `environment` says so, because it may be edited while tests run.
    """

    data_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    ignoring: Collection[signal.Signals] = ()
    checkout: Path = ROOT
    python: str = sys.executable
    module: str = "dynashard_local"

    def __post_init__(self) -> None:
        self.output: list[str] = []
        self.url = ""
        self._ready = Event()
        own = {"DATA_DIR": str(self.data_dir), "PORT": "0", "DYNAMODB_PORT": "0", "LOCAL_RELOAD": "off"}
        with signals_as_by_default(but_ignoring=self.ignoring):
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [self.python, "-m", self.module],
                cwd=self.checkout,
                env={**os.environ, **own, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            found = READY.search(line)
            if found:
                self.url = found[1]
                self._ready.set()
        self._ready.set()

    def ready(self) -> Self:
        assert self._ready.wait(HANG_SECONDS), self.text
        assert self.url, self.text
        return self

    @property
    def text(self) -> str:
        return "".join(self.output)

    def ended(self) -> int:
        """Wait until the process and its output have ended, and return its exit status."""
        status = self.process.wait(HANG_SECONDS)
        self._reader.join(HANG_SECONDS)
        return status

    def interrupt(self) -> int:
        """Send Ctrl-C as a terminal does: to the whole foreground process group."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.ended()

    def once(self, holds: Callable[[], bool]) -> Self:
        """Wait until a condition holds, and return the stack. Fails the test if the stack ends before."""
        deadline, pause = monotonic() + HANG_SECONDS, Event()
        while not holds():
            assert self.process.poll() is None, self.text
            assert monotonic() < deadline, self.text
            pause.wait(0.01)
        return self

    def client(self, tenant: str | None = "abc") -> httpx.Client:
        client = httpx.Client(base_url=self.url, timeout=HANG_SECONDS, trust_env=False)
        if tenant is not None:
            token = client.post("/local/tokens", json={"tenant_id": tenant}).json()["token"]
            client.headers["Authorization"] = f"Bearer {token}"
        return client

    def processes(self) -> dict[int, str]:
        """Return the processes that were started with this data folder: their command lines by id."""
        wanted = f"DATA_DIR={self.data_dir}\0".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes() + b"\0":
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # It has ended meanwhile, or may not be read.
        return found

    def engine_process(self) -> int:
        """Return the engine's process id. The watchdog, a shell that also names the engine, is left out."""
        (engine,) = (
            pid for pid, line in self.processes().items() if "dynoxide serve" in line and "read -r" not in line
        )
        return engine

    def worker_process(self) -> int:
        """Wait for the worker that resizes shard counts, and return its process id."""
        deadline, pause = monotonic() + HANG_SECONDS, Event()
        while monotonic() < deadline:
            for pid, line in self.processes().items():
                if "dynashard_local.workers.resharding" in line:
                    return pid
            pause.wait(0.01)
        raise AssertionError("no worker was started")

    @property
    def engine_url(self) -> str:
        """The URL of the engine."""
        return self.text.split("engine at ")[1].split()[0]

    def kill_everything(self) -> None:
        """Kill every process with SIGKILL. They are stopped first, so that none sees another one end."""
        started = self.processes()
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for process_id in started:
                os.kill(process_id, signal_number)
        self.ended()

    def all_gone(self) -> bool:
        """Wait for processes that are ending, and return whether all have ended."""
        deadline, pause = monotonic() + HANG_SECONDS, Event()
        while self.processes() and monotonic() < deadline:
            pause.wait(0.01)
        return not self.processes()
